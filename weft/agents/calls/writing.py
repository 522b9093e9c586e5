"""Queries written from calls: requests in several moods, values in natural places."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from weft.agents.calls.catalogue import CallTool
from weft.agents.calls.kinds import kind_of
from weft.agents.calls.phrases import NUMBER_WORDS, Phrase, join, phrase, state, write_value
from weft.agents.calls.pools import listed
from weft.agents.calls.purpose import command, fill_slots, purpose_of, question

Given = tuple[CallTool, Mapping[str, Any]]
"""A tool and the arguments of one call."""
_ORDERS: Final = (
    *("{}.", "{}.", "{}.", "{}", "Please {}.", "{}, please.", "Can you {}?", "Could you {}?"),
    *(
        "Could you please {}?",
        "I need you to {}.",
        "I want to {}.",
        "I'd like to {}.",
        "Help me {}.",
    ),
    *("I have to {}.", "Would you {}?", "Can you help me {}?", "Can you please {}?", "{}!"),
    *("Hey, can you {}?", "I would like you to {}.", "Could you help me {}?", "{} for me."),
)
_QUESTIONS: Final = (
    "{}?",
    "{}?",
    "{}?",
    "{}",
    "Quick question: {}?",
    "Hi, {}?",
    "Do you know {n}?",
)
_NEEDS: Final = (
    *("I need {n}.", "I need to know {n}.", "I'm looking for {n}.", "I'd like to know {n}."),
    *(
        "Can you tell me {n}?",
        "Could you tell me {n}?",
        "Show me {n}.",
        "I wonder {w}.",
        "Give me {n}.",
    ),
    *("Please tell me {n}.", "Any idea {w}?"),
)
_LEADS: Final = (
    *(
        "I'm preparing a report.",
        "This is for a school project.",
        "My manager asked me about this.",
    ),
    *("I'm planning ahead.", "We talked about it at lunch.", "I have a meeting soon.", "Hello!"),
    *(
        "I'm a student.",
        "I'm writing an article.",
        "We are two people working on this.",
        "Hi there.",
    ),
    *("I have been wondering about something.", "I was asked to look into something today."),
)
_REPEATS: Final = (
    *(", and also {}", ", and then {}", ", and the same {}", ". Do the same {}", ", as well as {}"),
    *(". Also {}", "; then {}", ". Then do it again {}", " and {}", ", plus {}"),
)
_SERIES: Final = (
    *("{}, and also {}", "{}, then {}", "{}. Also, {}", "{}. After that, {}", "{}, and {}"),
    *("first {}, then {}", "{}; and {}", "{}. In addition, {}", "{}. I also need you to {}"),
)
_CONFUSED: Final = frozenset(
    listed(
        "id,person,date,place,city,country,state,company,product,title,temperature,user,path,topic,"
        "email,year,language,clock,sentence,address,formula,url,other,from_place,to_place,money,age,"
        "quantity"
    )
)
"""Kinds whose arguments are only told apart by their names."""
_SHARED: Final[Mapping[str, str]] = {"city": "place", "country": "place", "state": "place"}
_ORDINALS: Final = ("first", "second", "third", "fourth", "fifth", "sixth")


@dataclass(frozen=True, slots=True)
class Clause:
    """A request without capital letter and end; `asks`: a question. `lead`: sentences before it.

    `fronted`: the arguments come first.
    """

    text: str
    asks: bool = False
    lead: str = ""
    fronted: bool = False


def intent(tool: CallTool) -> str:
    """What the tool does, as a request."""
    return purpose_of(tool).text


def literal(value: Any) -> str:
    """The value as JSON would have it, without quotes."""
    return f"{value:g}" if isinstance(value, float) and value == int(value) else str(value)


def write_query(calls: Sequence[Given], rng: random.Random) -> str:
    """A query that asks for these calls, in this order."""
    names = {tool.name for tool, _ in calls}
    if len(calls) == 1:
        return sentence(clause(*calls[0], rng), rng)
    if len(names) == 1:
        return _same_tool(calls, rng)
    return _several([clause(*call, rng, alone=False) for call in calls], rng)


def sentence(one: Clause, rng: random.Random) -> str:
    """The clause as one or two sentences."""
    text = one.text
    if one.asks:
        noun = re.sub(r"^what (?:is|are|was|were) ", "", text)
        if noun != text and rng.random() < 0.3:
            short = len(noun.split()) < 8
            frame = rng.choice((*_NEEDS, *_QUESTIONS[-1:]) if short else _NEEDS[:-2])
            said = frame.format(n=noun, w=f"what {noun} is")
        else:
            said = rng.choice(_QUESTIONS[:2] if one.fronted else _QUESTIONS[:-1]).format(text)
    else:
        frames: Sequence[str] = _ORDERS[:4] if one.fronted else _ORDERS
        if re.match(r"\w+ me\b|go ", text):
            frames = [frame for frame in frames if not re.match(r"I\b|Help|.*help me", frame)]
        said = rng.choice(frames).format(text)
    if rng.random() < 0.12:
        said = re.sub(r"(?i)\bwhat is\b", "what's", said, count=1)
    said = _capital(said)
    lead = one.lead or (rng.choice(_LEADS) if rng.random() < 0.1 else "")
    return f"{lead} {said}".strip()


def clause(
    tool: CallTool,
    given: Mapping[str, Any],
    rng: random.Random,
    *,
    alone: bool = True,
    texts: Mapping[str, str] | None = None,
) -> Clause:
    """A request for one call; `texts` replace the words of values, `alone` allows a lead."""
    purpose = purpose_of(tool)
    said = {
        name: (texts or {}).get(name) or write_value(name, tool.properties[name], value, rng)
        for name, value in given.items()
    }
    rest, placed = fill_slots(purpose, tool, said, rng)
    asked = question(purpose.verb, rest, rng) if rng.random() < 0.45 else None
    main = asked or command(purpose.verb, rest, rng)
    if asked is None and rng.random() < 0.03:
        main = f"use {rng.choice(('the function ', 'the ', ''))}{tool.name} to {main}"
    left = [name for name in given if name not in placed]
    text, lead = _with_arguments(main, tool, given, left, said, rng, alone=alone)
    fronted = not text.startswith(main)
    return Clause(text, asked is not None, lead, fronted)


def arguments(
    tool: CallTool,
    given: Mapping[str, Any],
    said: Mapping[str, str],
    rng: random.Random,
) -> str:
    """The arguments as one phrase: `in Oslo with a base of 10 and a height of 5`."""
    order = _ordered(list(given), rng)
    kinds = Counter(
        _SHARED.get(kind := kind_of(n, tool.properties[n]), kind) for n in tool.properties
    )
    phrases = []
    for name in order:
        schema = tool.properties[name]
        kind = kind_of(name, schema)
        alike = kinds[_SHARED.get(kind, kind)] > 1 and kind in _CONFUSED
        phrases.append(phrase(name, schema, given[name], rng, said.get(name), explicit=alike))
    follow = " ".join(one.text for one in phrases if not one.named)
    named = _named(phrases, rng.choice(("with", "with", "with", "with", "given", "using")))
    return " ".join((follow, named) if rng.random() < 0.6 else (named, follow)).strip()


def _with_arguments(
    main: str,
    tool: CallTool,
    given: Mapping[str, Any],
    left: Sequence[str],
    said: Mapping[str, str],
    rng: random.Random,
    *,
    alone: bool,
) -> tuple[str, str]:
    """The request with the arguments that it does not have yet, and sentences before it."""
    if not left:
        return main, ""
    rest = {name: given[name] for name in left}
    draw = rng.random()
    if draw < 0.68 or (not alone and draw > 0.9):
        return f"{main} {arguments(tool, rest, said, rng)}", ""
    if draw < 0.79:
        front = arguments(tool, rest, said, rng)
        return f"{front}, {main}", ""
    states = [state(name, tool.properties[name], given[name], rng, said[name]) for name in left]
    if draw < 0.84:
        opener = rng.choice(("where", "if", "given that", "when", "assuming"))
        return f"{main} {opener} {join(states)}", ""
    pairs = [f"{_bare(name)}{rng.choice(('=', ' = ', ': ', ' '))}{said[name]}" for name in left]
    if draw < 0.91:
        return rng.choice(
            (
                f"{main} with {join(pairs)}",
                f"{main} ({', '.join(pairs)})",
                f"{main}: " + ", ".join(pairs),
            )
        ), ""
    return main, _capital(f"{join(states)}.")


def _same_tool(calls: Sequence[Given], rng: random.Random) -> str:
    """Several calls of one tool: lists in place, the verb left out, or each in full."""
    tool, first = calls[0]
    given = [dict(arguments) for _, arguments in calls]
    varied = [
        name
        for name in dict.fromkeys(key for one in given for key in one)
        if any(one.get(name) != first.get(name) or name not in one for one in given)
    ]
    everywhere = all(name in one for name in varied for one in given)
    plain = everywhere and not any(isinstance(first[name], (bool, list, dict)) for name in varied)
    draw = rng.random()
    if (plain and len(varied) == 1 and draw < 0.55) or (plain and len(varied) == 2 and draw < 0.2):
        texts = {n: join(_texts(tool, n, given, rng)) for n in varied}
        made = clause(tool, first, rng, texts=texts)
        if len(varied) > 1:
            made = Clause(f"{made.text} respectively", made.asks, made.lead, made.fronted)
        return sentence(made, rng)
    if everywhere and draw < 0.8:
        return _elided(tool, given, varied, rng)
    if everywhere and draw < 0.88:
        return _cases(tool, given, varied, rng)
    return _several([clause(tool, one, rng, alone=False) for one in given], rng)


def _texts(
    tool: CallTool, name: str, given: Sequence[Mapping[str, Any]], rng: random.Random
) -> list[str]:
    state_of = rng.getstate()
    found = []
    for one in given:  # the same draw for each, so that all have the same form
        rng.setstate(state_of)
        found.append(write_value(name, tool.properties[name], one[name], rng))
    return found


def _elided(
    tool: CallTool, given: Sequence[Mapping[str, Any]], varied: Sequence[str], rng: random.Random
) -> str:
    """The first call in full, of the others only what differs."""
    made = clause(tool, given[0], rng, alone=False)
    joiner = rng.choice(_REPEATS)
    text = made.text
    for one in given[1:]:
        part = {name: one[name] for name in varied}
        said = {n: write_value(n, tool.properties[n], v, rng) for n, v in part.items()}
        again = arguments(tool, part, said, rng)
        text += joiner.format(again)
    return sentence(Clause(text, made.asks, made.lead, made.fronted), rng)


def _cases(
    tool: CallTool, given: Sequence[Mapping[str, Any]], varied: Sequence[str], rng: random.Random
) -> str:
    """The cases one by one, then the request, or the request first."""
    shared = {name: value for name, value in given[0].items() if name not in varied}
    main = sentence(clause(tool, shared, rng, alone=False), rng)
    if rng.random() < 0.5:
        said = [arguments(tool, {n: one[n] for n in varied}, {}, rng) for one in given]
        ones = [f"{'one' if not n else 'another'} {text}" for n, text in enumerate(said)]
        if len(said) > 2:
            ones = [f"the {place} {text}" for place, text in zip(_ORDINALS, said, strict=False)]
        number = NUMBER_WORDS[len(said)]
        return f"{main} There are {number} cases: {join(ones)}."
    cases = []
    for place, one in zip(_ORDINALS, given, strict=False):
        states = [state(n, tool.properties[n], one[n], rng) for n in varied]
        cases.append(f"{'in' if rng.random() < 0.5 else 'for'} the {place} case {join(states)}")
    told = _capital("; ".join(cases)) + "."
    number = NUMBER_WORDS[len(given)]
    opener = rng.choice((f"There are {number} cases.", f"I have {number} of them.", ""))
    return f"{opener} {told} {main}".strip() if rng.random() < 0.5 else f"{main} {told}"


def _several(clauses: Sequence[Clause], rng: random.Random) -> str:
    """Requests side by side, in one sentence or in several."""
    if rng.random() < 0.35:
        return " ".join(sentence(one, rng) for one in clauses)
    if rng.random() < 0.3:
        opener = rng.choice(
            ("I need help with a few things.", "Could you help me with some tasks?", "Some things:")
        )
        told = [f"{place}, {one.text}" for place, one in zip(_ORDINALS, clauses, strict=False)]
        return f"{opener} " + " ".join(
            _capital(text) + ("?" if one.asks else ".")
            for text, one in zip(told, clauses, strict=True)
        )
    text = clauses[0].text
    for one in clauses[1:]:
        options = _SERIES[:-1] if one.asks else _SERIES
        text = rng.choice(options).format(text, one.text)
    first = clauses[0]
    return sentence(Clause(text, first.asks, first.lead, first.fronted), rng)


def _ordered(names: list[str], rng: random.Random) -> list[str]:
    """Shuffled, but start before end and source before target."""
    rng.shuffle(names)
    early = re.compile(r"(?i)start|from|origin|source|min|departure|check_?in")
    late = re.compile(r"(?i)end|to_|target|destination|max|arrival|check_?out")
    return sorted(names, key=lambda name: bool(late.search(name)) - bool(early.search(name)))


def _named(phrases: Sequence[Phrase], opener: str) -> str:
    texts = [one.text for one in phrases if one.named]
    return f"{opener} {join(texts)}" if texts else ""


def _bare(name: str) -> str:
    return name.replace("_", " ") if len(name) > 2 else name


def _capital(text: str) -> str:
    text = re.sub(r"([.?!] )([a-z])", lambda found: found[1] + found[2].upper(), text)
    return text[:1].upper() + text[1:]
