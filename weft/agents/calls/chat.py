"""Requests that no tool is needed for: small talk, opinions and general knowledge."""

from __future__ import annotations

import random
from typing import Final

from weft.agents.calls import pools

_TALK: Final = (
    "Hello, how are you today?",
    "Thanks, that was very helpful!",
    "Tell me a joke about {noun}.",
    "What do you think about {topic}?",
    "Write a short poem about {topic}.",
    "Who are you?",
    "I feel a bit tired today.",
    "Can you recommend a good book on {topic}?",
    "What is your favourite kind of {noun}?",
    "Give me three tips for {noun}.",
    "Explain {topic} to a child.",
    "Good morning! Did you sleep well?",
    "Summarise our conversation so far.",
    "How do you say thank you in {language}?",
)
_KNOWLEDGE: Final = (
    "Who invented the {thing}?",
    "What does the word {noun} mean?",
    "What is the best month to visit {city}?",
    "How do I clean a {thing}?",
    "Why is {topic} important?",
    "What is the capital of {country}?",
    "Who was the first person to write about {topic}?",
    "How long does it take to learn {language}?",
    "What is the difference between {noun} and {other}?",
    "When did {topic} begin in {country}?",
    "What are the main rules of {noun}?",
    "Which famous people were born in {city}?",
    "How many people in {country} speak {language}?",
    "How many grams are in {number} ounces?",
    "What is {number} plus {number2}?",
    "What is the square root of {number}?",
    "Is {number} a prime number?",
    "How much does a {thing} cost in {country}?",
    "Who is the head of {company}?",
    "What are some popular films about {topic}?",
    "What time is it in {city}?",
    "How far is {city} from {city2}?",
    "What is the population of {city}?",
    "What is the largest lake in {country}?",
    "What colours go well with {color}?",
    "List the ingredients of a typical dish from {country}.",
    "Who won the last match between {city} and {city2}?",
    "How old is {person}?",
    "What is the weight of a {thing}?",
)


_ABOUT: Final = (
    "Why is {about} important?",
    "Who invented {about}?",
    "How does {about} work?",
    "What is the history of {about}?",
    "What does the word {about} mean?",
    "What do people usually think about {about}?",
    "When did people first hear of {about}?",
    "Write two sentences on {about}.",
    "Is {about} the same everywhere?",
    "Which famous person is known for {about}?",
    "How do you spell {about}?",
    "What are the best films about {about}?",
)


def small_talk(rng: random.Random, about: str = "") -> str:
    """A request or remark that a model answers in words; `about`: what it is to be about."""
    form = rng.choice(_ABOUT if about else (*_TALK, *_KNOWLEDGE, *_KNOWLEDGE))
    return form.format(
        about=about,
        noun=rng.choice(pools.NOUNS),
        other=rng.choice(pools.NOUNS),
        topic=pools.topic(rng),
        thing=rng.choice(pools.THINGS),
        city=rng.choice(pools.CITIES),
        city2=rng.choice(pools.CITIES),
        country=rng.choice(pools.COUNTRIES),
        language=rng.choice(pools.LANGUAGES),
        color=rng.choice(pools.COLORS),
        company=pools.company(rng),
        person=pools.person(rng),
        number=rng.randint(2, 999),
        number2=rng.randint(2, 999),
    )
