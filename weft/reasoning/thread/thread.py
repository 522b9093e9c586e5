"""One thread while it lives: its context, its state and what it did. Asks no model."""

from __future__ import annotations

from typing import Any, Final

from weft.core.errors import InternalError
from weft.reasoning.grammar import ChildSpec
from weft.reasoning.question import Question
from weft.reasoning.thread.context import Context
from weft.reasoning.thread.record import Fork, Segment, ThreadRecord, ThreadState

_S = ThreadState
_ENDS: Final = frozenset((_S.DONE, _S.FAILED, _S.CANCELLED, _S.CONTEXT_FULL))
_AFTER: Final = {
    _S.READY: {_S.DECODING, _S.FORKING, _S.WAITING, *_ENDS},
    _S.DECODING: {_S.READY, *_ENDS},
    _S.FORKING: {_S.WAITING, _S.READY, *_ENDS},
    _S.WAITING: {_S.JOINING, *_ENDS},
    _S.JOINING: {_S.READY, *_ENDS},
}


class Thread:
    """What a grammar sees of a thread, and the runtime keeps of it. Grammars change only `memory`.

    `depth` is 0 for the root. `generated` counts the tokens that the model wrote in it, of at most
    `limit`; `rounds` the forks that were made in it, `refused` those that were not, `mended` how
    often it was mended. `room`: tokens that the window has left for a join. `open`: children that
    were detached and not joined yet.
    """

    def __init__(
        self,
        id: str,  # noqa: A002 - the word for it
        spec: ChildSpec,
        question: Question,
        depth: int,
        limit: int,
    ) -> None:
        self.id = id
        self.spec = spec
        self.question = question
        self.depth = depth
        self.limit = limit
        self.state = ThreadState.READY
        self.reason = ""
        self.result = ""
        self.context = Context(())
        self.memory: dict[str, Any] = {}
        self.open: list[Thread] = []
        self.generated = 0
        self.rounds = 0
        self.refused = 0
        self.mended = 0
        self.room = 0
        self._header = Context(())
        self._log: list[Segment | tuple[Thread, ...]] = []

    @property
    def key(self) -> str:
        """Its name among its siblings."""
        return self.spec.key

    @property
    def role(self) -> str:
        """What it is for."""
        return self.spec.role

    @property
    def finished(self) -> bool:
        """Whether it came to its own end, and was not cut off or lost."""
        return self.state is ThreadState.DONE

    @property
    def body(self) -> tuple[int, ...]:
        """The ids of what was written in it, after its prompt and its header."""
        return self.context.ids[len(self._header.ids) :]

    @property
    def text(self) -> str:
        """The text of `body`, tags spelt out."""
        return self.context.text[len(self._header.text) :]

    @property
    def children(self) -> tuple[Thread, ...]:
        """All that it forked, in declared order."""
        return tuple(child for part in self._log if isinstance(part, tuple) for child in part)

    def begin(self, context: Context) -> None:
        """Start from `context`, all of which is there before anything is written."""
        self.context = self._header = context

    def restart(self, context: Context) -> None:
        """Go on in a new context, after a join that changed or replaced the old one."""
        self.context = context
        if context.prompt != self._header.prompt:
            self._header = Context(context.prompt)

    def note(self, segment: Segment) -> None:
        """Keep `segment` for the record."""
        if segment.token_ids or segment.text:
            self._log.append(segment)

    def forked(self, children: tuple[Thread, ...]) -> None:
        """Keep a fork for the record."""
        self.rounds += 1
        self._log.append(children)

    def move(self, state: ThreadState, reason: str = "") -> None:
        """Go from one state to the next.

        Raises: `InternalError` for a way that the state machine does not have.
        """
        if state not in _AFTER.get(self.state, ()):
            raise InternalError(f"{self.id} cannot go from {self.state.value} to {state.value}")
        self.state = state
        self.reason = reason or self.reason

    def record(self) -> ThreadRecord:
        """The thread and all below it, as plain values."""
        return ThreadRecord(
            self.id,
            self.role,
            self.key,
            self.state,
            self.reason,
            len(self._header.prompt),
            tuple(
                Fork(tuple(child.record() for child in part)) if isinstance(part, tuple) else part
                for part in self._log
            ),
            self.result,
        )
