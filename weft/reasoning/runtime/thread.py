"""One thread while it lives: its context, its state and what it did. Asks no model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from weft.core.errors import InternalError
from weft.reasoning.question import Question
from weft.reasoning.runtime.context import TokenContext
from weft.reasoning.runtime.moves import ChildSpec
from weft.reasoning.runtime.special_tokens import SpecialTokens
from weft.reasoning.thought import ThreadFork, ThreadRecord, ThreadSegment, ThreadState

_S = ThreadState
_ENDS: Final = frozenset((_S.DONE, _S.FAILED, _S.CANCELLED, _S.CONTEXT_FULL))
_AFTER: Final = {
    _S.READY: {_S.DECODING, _S.FORKING, _S.WAITING, *_ENDS},
    _S.DECODING: {_S.READY, *_ENDS},
    _S.FORKING: {_S.WAITING, _S.READY, *_ENDS},
    _S.WAITING: {_S.JOINING, *_ENDS},
    _S.JOINING: {_S.READY, *_ENDS},
}


class _JoinedThreads(NamedTuple):
    """Where `threads` were joined, and how much their parent wrote beside each of them."""

    threads: tuple[Thread, ...]
    meanwhile: tuple[int, ...]


class Thread:
    """What a grammar sees of a thread, and the runtime keeps of it. Grammars change only `memory`.

    `depth` is 0 for the root. `generated` counts the tokens that the model wrote in it, of at most
    `limit`, and `born` those of its parent when it began; `before` is the critical path up to its
    beginning. `rounds` counts the forks that were made in it, `refused` those that were not,
    `mended` how often it was mended. `room`: tokens that the window has left for a join; None: no
    limit. `open`: children that are not joined yet. `cut`: the latest that it wrote ends where its
    tokens were spent.
    """

    def __init__(
        self,
        id: str,  # noqa: A002 - the word for it
        spec: ChildSpec,
        question: Question,
        depth: int,
        limit: int,
        special: SpecialTokens | None = None,
    ) -> None:
        self.id = id
        self.spec = spec
        self.question = question
        self.depth = depth
        self.limit = limit
        self.state = ThreadState.READY
        self.reason = ""
        self.result = ""
        self.cut = False
        self.context = TokenContext(())
        self.memory: dict[str, Any] = {}
        self.open: list[Thread] = []
        self.generated = 0
        self.born = 0
        self.before = 0
        self.rounds = 0
        self.refused = 0
        self.mended = 0
        self.room: int | None = None
        self._header = TokenContext(())
        self._special = special or SpecialTokens((), {})
        self._log: list[ThreadSegment | _JoinedThreads] = []
        self._path = 0

    @property
    def key(self) -> str:
        return self.spec.key

    @property
    def role(self) -> str:
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
    def said(self) -> str:
        """`text` for a message: no tag can come of it."""
        return self._special.guarded(self.text)

    @property
    def prompted(self) -> bool:
        """Whether the model has not all of the protocol's tags, and is told about them."""
        return self._special.prompted

    @property
    def children(self) -> tuple[Thread, ...]:
        """All that it forked, in declared order."""
        joined = (
            child
            for part in self._log
            if isinstance(part, _JoinedThreads)
            for child in part.threads
        )
        return (*joined, *self.open)

    @property
    def own_path_tokens(self) -> int:
        """What it adds to the critical path: its own tokens, and of each fork its longest child."""
        return self._path

    @property
    def path_tokens(self) -> int:
        """The critical path from the beginning of the thought to here, open children left out."""
        return self.before + self._path

    def begin(self, context: TokenContext) -> None:
        """Start from `context`, all of which is there before anything is written."""
        self.context = self._header = context

    def restart(self, context: TokenContext) -> None:
        """Go on in a new context, after a join that changed or replaced the old one."""
        self.context = context
        if context.prompt != self._header.prompt:
            self._header = TokenContext(context.prompt)

    def note(self, segment: ThreadSegment) -> None:
        if segment.count or segment.text:
            self._log.append(segment)
            self._path += 0 if segment.forced else segment.count

    def fork(self, children: Sequence[Thread]) -> None:
        """`children` begin; they are `open` until they are joined."""
        self.rounds += 1
        for child in children:
            child.born = self.generated
            child.before = self.path_tokens
        self.open += children

    def joined(self) -> tuple[Thread, ...]:
        """All open children are joined here; they are kept for the record."""
        children, self.open = tuple(self.open), []
        meanwhile = tuple(self.generated - child.born for child in children)
        if children:
            self._log.append(_JoinedThreads(children, meanwhile))
            beside = zip(children, meanwhile, strict=True)
            self._path += max(max(0, child.own_path_tokens - own) for child, own in beside)
        return children

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
                ThreadFork(tuple(child.record() for child in part.threads), part.meanwhile)
                if isinstance(part, _JoinedThreads)
                else part
                for part in self._log
            ),
            self.result,
        )
