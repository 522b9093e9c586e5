"""What of a prompt is new to a server, and what of it is known before the rest. Runs nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evals.serving.programs import Call, Output, Piece, Program, Tool, ancestors, size, sizes

LEAST_TOKENS = 128
"""Less than one block of vLLM's on a CPU cannot be kept in its cache."""


@dataclass(frozen=True, slots=True)
class Known:
    """The beginning of the prompt of `call`: all that stands before the last tool it waits for."""

    call: Call
    pieces: tuple[Piece, ...]

    @property
    def after(self) -> tuple[str, ...]:
        """The steps whose outputs it contains."""
        return tuple(piece.step for piece in self.pieces if isinstance(piece, Output))


def known_parts(program: Program) -> list[Known]:
    """The beginnings that no earlier call of the program leaves in the server's cache."""
    tokens = sizes(program)
    tools = {step.name for step in program.steps if isinstance(step, Tool)}
    found = []
    for call in program.calls:
        late = [name for name in call.after if name in tools]
        if late:
            pieces = call.prompt[: call.prompt.index(Output(late[-1]))]
            if size(_unseen(pieces, _before(program, call)), tokens) >= LEAST_TOKENS:
                found.append(Known(call, pieces))
    return found


def new_tokens(program: Program) -> dict[str, int]:
    """How many tokens of each call's prompt no call before it has computed, by the call's name.

    Siblings that share a prefix leave it to the first of them.
    """
    tokens, calls = sizes(program), program.calls
    return {
        call.name: size(_unseen(call.prompt, calls[:place]), tokens)
        for place, call in enumerate(calls)
    }


def computed_tokens(program: Program) -> int:
    """How many prompt tokens a server with room for everything computes for the whole program."""
    return sum(new_tokens(program).values())


def _before(program: Program, call: Call) -> list[Call]:
    names = ancestors(program)[call.name]
    return [other for other in program.calls if other.name in names]


def _unseen(pieces: tuple[Piece, ...], earlier: Sequence[Call]) -> tuple[Piece, ...]:
    """What follows the longest beginning that `pieces` share with a call in `earlier`."""
    alike = [_alike(pieces, (*other.prompt, Output(other.name))) for other in earlier]
    return pieces[max(alike, default=0) :]


def _alike(one: tuple[Piece, ...], other: tuple[Piece, ...]) -> int:
    """How many pieces the two begin with in common."""
    count = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            break
        count += 1
    return count
