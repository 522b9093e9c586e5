"""Prompts of weft's own, for who has none: questions, summaries, code, JSON, sums, letters, plans.

Made from templates, always the same. They are what agents ask, and of no benchmark.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from weft.training.prompts import Conversation

_COUNT: Final = 480
_TOPICS: Final = (
    "photosynthesis", "inflation", "the water cycle", "vaccines", "black holes",
    "compound interest", "recycling", "the French Revolution", "machine learning",
    "plate tectonics", "sleep",
    "renewable energy", "the stock market", "antibiotics", "volcanoes", "public transport",
    "time zones", "the printing press", "encryption", "healthy eating", "electric cars",
    "the Roman Empire", "databases", "migration of birds", "supply and demand", "earthquakes",
    "the Silk Road", "meditation", "solar eclipses", "open source software", "beekeeping",
    "the immune system", "urban gardening", "version control", "the Renaissance", "coffee",
    "chess", "tides", "insurance", "remote work",
)  # fmt: skip
_QUESTIONS: Final = (
    "What is {a}, and why does it matter?",
    "Explain {a} to a ten-year-old.",
    "Give five short facts about {a}.",
    "What are common misunderstandings about {a}?",
    "Write a short paragraph about {a}.",
    "Compare {a} and {b} in a few sentences.",
    "List three advantages and three disadvantages of {a}.",
    "Write an introduction for an article about {a}.",
    "How would you teach a lesson about {a}?",
    "Write a short story in which {a} plays a part.",
)
_GOALS: Final = (
    "learn to play the guitar", "prepare for a job interview", "move to a new city",
    "organise a birthday party", "start a small online shop", "train for a 10 km run",
    "write a research report", "plan a week of meals", "set up a home office", "learn Spanish",
    "reduce the electricity bill", "migrate a website to a new server", "clean up a dataset",
    "review a pull request", "plant a vegetable garden", "plan a trip through Portugal",
)  # fmt: skip
_PEOPLE: Final = (
    "Maria Lopez", "John Carter", "Aisha Khan", "Peter Novak", "Emily Chen", "Tomas Berg",
    "Fatima Ali", "Lucas Martin", "Nina Petrova", "David Okafor", "Sofia Rossi", "Kenji Tanaka",
)  # fmt: skip
_PLACES: Final = (
    "Lisbon",
    "Toronto",
    "Nairobi",
    "Oslo",
    "Chicago",
    "Seoul",
    "Berlin",
    "Lima",
    "Dublin",
    "Pune",
)
_FIRMS: Final = ("Northwind", "Blue Harbor", "Greenleaf", "Quantia", "Redstone", "Silverline")
_JOBS: Final = ("engineer", "nurse", "teacher", "designer", "accountant", "photographer", "chef")
_WARES: Final = ("lamp", "keyboard", "backpack", "water bottle", "desk chair", "notebook", "kettle")
_REASONS: Final = (
    "strong demand in Asia", "a new line of products", "lower energy costs", "better weather",
    "a change of suppliers", "more visitors from abroad", "a campaign on social media",
)  # fmt: skip
_CODE: Final = (
    """\
def total(prices):
    result = 0
    for price in prices:
        result += price
    return result""",
    """\
def is_even(n):
    if n % 2 == 0:
        return True
    else:
        return False""",
    """\
def read_lines(path):
    f = open(path)
    lines = f.readlines()
    f.close()
    return lines""",
    """\
def largest(numbers):
    best = 0
    for n in numbers:
        if n > best:
            best = n
    return best""",
    """\
class Account:
    def __init__(self, owner, balance=0):
        self.owner = owner
        self.balance = balance

    def deposit(self, amount):
        self.balance += amount""",
    """\
def count_words(text):
    counts = {}
    for word in text.split():
        if word not in counts:
            counts[word] = 0
        counts[word] += 1
    return counts""",
    """\
function greet(name) {
  return 'Hello, ' + name + '!';
}""",
    "SELECT name, city FROM customers WHERE city = 'Oslo' ORDER BY name;",
)
_EDITS: Final = (
    "Add a docstring and type hints. Print the whole code again.",
    "Explain step by step what it does.",
    "Rewrite it to be shorter. Print only the code.",
    "Rename the variables to clearer names and print the whole code.",
    "Write two unit tests for it.",
    "Find a case in which it fails, and mend it. Print the corrected code.",
    "Add handling of wrong input. Print the whole code again.",
)
_LETTERS: Final = (
    "Write a polite email to {person} to move the meeting from Monday to {day}.",
    "Write a short thank-you note to {person}, who helped with the {ware} project.",
    "Write a complaint to {firm} about a {ware} that arrived broken.",
    "Write a reply to {person}, who asks when the {ware} will be delivered.",
    "Write a message to the team of {firm}: the office in {place} is closed on {day}.",
)
_DAYS: Final = ("Tuesday", "Wednesday", "Thursday", "Friday")


class _Choice:
    """Picks at random, from one seed."""

    def __init__(self, seed: int) -> None:
        self._chance = np.random.default_rng(seed)

    def of(self, things: Sequence[str]) -> str:
        return things[int(self._chance.integers(len(things)))]

    def number(self, low: int, high: int) -> int:
        return int(self._chance.integers(low, high))


def starter_prompts() -> list[Conversation]:
    """All of them, the kinds in turn. No prompt twice."""
    choice, found = _Choice(6), dict[str, None]()
    while len(found) < _COUNT:
        for make in _MAKERS:
            found.setdefault(make(choice))
    return [(("user", text),) for text in list(found)[:_COUNT]]


def _question(choice: _Choice) -> str:
    return choice.of(_QUESTIONS).format(a=choice.of(_TOPICS), b=choice.of(_TOPICS))


def _plan(choice: _Choice) -> str:
    goal, steps = choice.of(_GOALS), choice.number(4, 8)
    return f"Make a plan in {steps} numbered steps to {goal}."


def _person(choice: _Choice) -> str:
    return (
        f"{choice.of(_PEOPLE)} is {choice.number(21, 65)} years old, works as a "
        f"{choice.of(_JOBS)} at {choice.of(_FIRMS)} and has lived in {choice.of(_PLACES)} since "
        f"{choice.number(1990, 2024)}."
    )


def _report(choice: _Choice) -> str:
    firm, place = choice.of(_FIRMS), choice.of(_PLACES)
    return (
        f"{firm} announced on {choice.of(_DAYS)} that its sales rose by {choice.number(3, 40)} "
        f"percent to {choice.number(20, 900)} million dollars. The company, which employs "
        f"{choice.number(2, 90) * 100} people in {place}, gave {choice.of(_REASONS)} as the main "
        f"reason. {choice.of(_PEOPLE)}, who leads the company, said that a new factory for the "
        f"{choice.of(_WARES)} will open in {choice.of(_PLACES)} next year. Analysts were more "
        f"careful: {choice.of(_REASONS)} may not last, they said, and competitors are catching up."
    )


def _summary(choice: _Choice) -> str:
    return f"Summarise this text in {choice.of(('one sentence', 'two sentences'))}.\n\n" + _report(
        choice
    )


def _extraction(choice: _Choice) -> str:
    facts = "\n".join(_person(choice) for _ in range(choice.number(1, 4)))
    return (
        "Return a JSON list with an object for each person, with the keys name, age, job, company, "
        f"city and since. Print nothing else.\n\n{facts}"
    )


def _order(choice: _Choice) -> str:
    wares = ", ".join(f"{choice.number(1, 9)} x {choice.of(_WARES)}" for _ in range(3))
    return (
        f"{choice.of(_PEOPLE)} orders {wares}, to be sent to {choice.of(_PLACES)}. Write the order "
        'as a JSON object with the keys "customer", "city" and "items".'
    )


def _quote(choice: _Choice) -> str:
    questions = ("Which reason is given?", "How many people work there?", "Who leads the company?")
    return (
        f"{_report(choice)}\n\n{choice.of(questions)} Answer by quoting the sentence that says it."
    )


def _edit(choice: _Choice) -> str:
    return f"{choice.of(_EDITS)}\n\n```\n{choice.of(_CODE)}\n```"


def _sum(choice: _Choice) -> str:
    person, ware = choice.of(_PEOPLE), choice.of(_WARES)
    return (
        f"{person} buys {choice.number(2, 12)} of a {ware} at {choice.number(3, 60)} dollars each "
        f"and pays with {choice.number(8, 20) * 50} dollars. How much money comes back? "
        "Think step by step."
    )


def _letter(choice: _Choice) -> str:
    return choice.of(_LETTERS).format(
        person=choice.of(_PEOPLE),
        day=choice.of(_DAYS),
        ware=choice.of(_WARES),
        firm=choice.of(_FIRMS),
        place=choice.of(_PLACES),
    )


_MAKERS: Final[tuple[Callable[[_Choice], str], ...]] = (
    _question,
    _summary,
    _edit,
    _question,
    _extraction,
    _plan,
    _question,
    _order,
    _sum,
    _edit,
    _letter,
    _quote,
)
