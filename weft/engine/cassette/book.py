"""What those who record calls have before them: what is known already, and where to write.

Knows no journal.
"""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from weft.core.calls import CallEvent, CallId, ModelAnswered, ModelCalled, ToolCalled, ToolReturned
from weft.core.codec import opaque_in
from weft.core.ids import NodeId, RunId, in_any_attempt
from weft.core.ports.model import Delta, Prefilled
from weft.core.redaction import Redactor
from weft.core.values import JsonSchema
from weft.engine.cassette.digest import CallDigests
from weft.engine.place import Place

Piece = tuple[float, Delta | Prefilled]
"""A piece of an answer, and the seconds of the run at which it came."""


@dataclass(frozen=True, slots=True)
class Known:
    """A call that was made before: how it began, what came of it, and its end if that is known."""

    called: ToolCalled | ModelCalled
    pieces: tuple[Piece, ...] = ()
    ended: ToolReturned | ModelAnswered | None = None

    @property
    def succeeded(self) -> bool:
        """Whether it ended without a failure, and with a result that the record has as it was."""
        return self.ended is not None and self.ended.failure is None and not self.is_lost

    @property
    def is_lost(self) -> bool:
        """Whether the record has no more than a likeness of its result."""
        return isinstance(self.ended, ToolReturned) and opaque_in(self.ended.value) is not None

    @property
    def where(self) -> str:
        """`NODE@CALL`, its place in whatever attempt."""
        return f"{in_any_attempt(self.called.node)}@{self.called.call}"

    @property
    def by_word(self) -> bool:
        """Whether it was not made, and ended as a person says."""
        return isinstance(self.called, ToolCalled) and bool(self.called.stands_for)

    @property
    def stands_in(self) -> bool:
        """Whether it was never made: a person's word on another call stands for it."""
        called = self.called
        return isinstance(called, ToolCalled) and called.stands_for not in ("", self.where)


@dataclass(frozen=True, slots=True)
class Confirmation:
    """What a person says of a call that nobody knows the end of.

    done     it was carried out; `value` is what it returned
    repeat   it was not, or it may be repeated
    corrects an earlier word on the same call
    """

    kind: Literal["done", "repeat"]
    value: Any = None
    corrects: bool = False


class CallIds:
    """Numbers the calls of one content within an attempt, in the order in which they are made."""

    def __init__(self) -> None:
        self._made: dict[tuple[NodeId, int, str], int] = {}

    def tool(self, place: Place, digest: str) -> CallId:
        """The id of the next tool call with this content."""
        return self._next(place, f"tool:{digest}")

    def model(self, place: Place, digest: str) -> CallId:
        """The id of the next model call with this content."""
        return self._next(place, f"model:{digest}")

    def _next(self, place: Place, content: str) -> CallId:
        where = place.node, place.attempt, content
        number = self._made.get(where, 0)
        self._made[where] = number + 1
        return CallId(f"{content}#{number}")


class CallBook(Protocol):
    """What a run knows of its calls, and where they are written."""

    @property
    def run(self) -> RunId:
        """The run."""

    @property
    def ids(self) -> CallIds:
        """Those of the run's calls."""

    @property
    def digests(self) -> CallDigests:
        """What tells the run's calls apart."""

    @property
    def redactor(self) -> Redactor:
        """What is secret in this run; whoever reads `write` redacts."""

    @property
    def kept(self) -> bool:
        """Whether what is written is kept; else it holds for as long as the process lives."""

    @property
    def now_s(self) -> float:
        """Seconds of the run, those of its earlier parts included."""

    def known(self, place: Place, call: CallId) -> Known | None:
        """What an earlier part of the run knows of a call in the same attempt; the latest."""

    def once(self, node: NodeId, call: CallId) -> Known | None:
        """The latest of all that is known of a call that must not be repeated, in any attempt."""

    @property
    def unsure(self) -> bool:
        """Whether a call that must not be repeated may have been made without being known."""

    def replaced(self, place: Place, call: CallId) -> Known | None:
        """A call that acted here in another attempt or part, and that this attempt has not made.

        It must not be repeated, and `call`, which nobody has made before, may be the same intent.
        """

    def superseded(self, place: Place, call: CallId) -> bool:
        """Whether another call has acted since this one did nothing, chosen in its place."""

    def confirmed(
        self, node: NodeId, call: CallId, other: Known | None = None
    ) -> Confirmation | None:
        """What a person said of a call whose end nobody knows, or of `other`, made in its place.

        A word that a call is done holds for one call.
        """

    def misfit(self, value: Any, schema: JsonSchema) -> str | None:
        """Why what a person says that a call returned cannot be its result; None: it can."""

    def told(self, model: str, question: tuple[Any, ...]) -> bool:
        """Whether an answer to `question` is in the record already; from now on it is."""

    def log(self, node: NodeId, text: str) -> None:
        """Show people a line."""

    def put(self, event: CallEvent, durable: bool = False) -> Awaitable[None] | None:
        """As `write`, without a coroutine where there is nothing to wait for: None then."""

    async def write(self, event: CallEvent, durable: bool = False) -> None:
        """Add to the record. `durable`: it is not lost from here on, whatever happens.

        Raises: `StoreError`.
        """
