"""A program as the load generator sees it: model calls, tools and races that wait for one another.

Values only; how a program is run is up to the systems.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Ids = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Output:
    """A piece of a prompt that the step of that name gives."""

    step: str


Piece = Ids | Output


@dataclass(frozen=True, slots=True)
class Call:
    """A model call. It always writes `max_tokens` tokens.

    `prefix` names calls of one program whose prompts begin alike. `valid`: whether a race takes
    its answer, which a program only learns once it has all of it.
    """

    name: str
    prompt: tuple[Piece, ...]
    max_tokens: int
    prefix: str | None = None
    valid: bool = True

    @property
    def after(self) -> tuple[str, ...]:
        """The steps whose outputs the prompt contains."""
        return tuple(piece.step for piece in self.prompt if isinstance(piece, Output))

    def ids(self, outputs: Mapping[str, Ids]) -> Ids:
        """The whole prompt, given what the steps in `after` gave."""
        return join(self.prompt, outputs)


@dataclass(frozen=True, slots=True)
class Tool:
    """Something outside the model: takes `seconds` and gives `result`."""

    name: str
    seconds: float
    result: Ids
    after: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class First:
    """Gives the output of whichever call in `after` is first to end with a valid answer."""

    name: str
    after: tuple[str, ...]


Step = Call | Tool | First


@dataclass(frozen=True, slots=True)
class Program:
    """`steps` in an order in which each comes after those it waits for; the last is the result."""

    id: str
    kind: str
    arrival_s: float
    steps: tuple[Step, ...]

    @property
    def calls(self) -> tuple[Call, ...]:
        """The model calls."""
        return tuple(step for step in self.steps if isinstance(step, Call))

    @property
    def result(self) -> str:
        """The step that the program is about."""
        return self.steps[-1].name


def join(pieces: tuple[Piece, ...], outputs: Mapping[str, Ids]) -> Ids:
    """The pieces as one row of token ids."""
    found: list[int] = []
    for piece in pieces:
        found += outputs[piece.step] if isinstance(piece, Output) else piece
    return tuple(found)


def sizes(program: Program) -> dict[str, int]:
    """How many tokens each step gives; a race counts as its longest call."""
    found: dict[str, int] = {}
    for step in program.steps:
        match step:
            case Call():
                found[step.name] = step.max_tokens
            case Tool():
                found[step.name] = len(step.result)
            case First():
                found[step.name] = max(found[name] for name in step.after)
    return found


def size(pieces: tuple[Piece, ...], given: Mapping[str, int]) -> int:
    """The tokens of the pieces, where steps give as many tokens as `given` says."""
    return sum(given[piece.step] if isinstance(piece, Output) else len(piece) for piece in pieces)


def ancestors(program: Program) -> dict[str, frozenset[str]]:
    """For each step, the steps that it waits for, directly or not."""
    found: dict[str, frozenset[str]] = {}
    for step in program.steps:
        found[step.name] = frozenset(step.after).union(*(found[name] for name in step.after))
    return found
