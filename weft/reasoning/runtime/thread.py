"""One running thread: its context, state and history."""

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
    """A join of `threads`, and the tokens that their parent wrote parallel to each."""

    threads: tuple[Thread, ...]
    meanwhile: tuple[int, ...]


class Thread:
    """The state of one thread. Grammars change only `memory`.

    `depth` is 0 for the root. `generated` counts the model's tokens in it, at most `limit`; `born`
    those of its parent when it began; `before` is the critical path up to its beginning. `rounds`
    counts its forks, `refused` its refused forks, `repaired` its repairs. `room`: tokens left in
    the window for a join; None: no limit. `open`: children not joined yet. `cut`: its latest output
    was cut off at a token limit.
    """

    def __init__(
        self,
        id: str,  # noqa: A002 - the term of the record
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
        self.repaired = 0
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
        """Whether it ended by itself, not cut off or lost."""
        return self.state is ThreadState.DONE

    @property
    def body(self) -> tuple[int, ...]:
        """The ids after its prompt and its header."""
        return self.context.ids[len(self._header.ids) :]

    @property
    def text(self) -> str:
        """The text of `body`, including tags."""
        return self.context.text[len(self._header.text) :]

    @property
    def safe_text(self) -> str:
        """`text` with tags escaped, for a message."""
        return self._special.guarded(self.text)

    @property
    def prompted(self) -> bool:
        """Whether the model lacks tags of the protocol, so that the prompt explains them."""
        return self._special.prompted

    @property
    def children(self) -> tuple[Thread, ...]:
        """All forked threads, in declared order."""
        joined = (
            child
            for part in self._log
            if isinstance(part, _JoinedThreads)
            for child in part.threads
        )
        return (*joined, *self.open)

    @property
    def own_path_tokens(self) -> int:
        """Its share of the critical path: its own tokens and, per fork, its longest child."""
        return self._path

    @property
    def path_tokens(self) -> int:
        """The critical path from the beginning of the thought to here, without open children."""
        return self.before + self._path

    def begin(self, context: TokenContext) -> None:
        """Start from `context`, all of which precedes the thread's own text."""
        self.context = self._header = context

    def restart(self, context: TokenContext) -> None:
        """Continue in a new context, after a join that changed or replaced the old one."""
        self.context = context
        if context.prompt != self._header.prompt:
            self._header = TokenContext(context.prompt)

    def note(self, segment: ThreadSegment) -> None:
        if segment.count or segment.text:
            self._log.append(segment)
            self._path += 0 if segment.forced else segment.count

    def fork(self, children: Sequence[Thread]) -> None:
        """Add forked `children`; they are `open` until they are joined."""
        self.rounds += 1
        for child in children:
            child.born = self.generated
            child.before = self.path_tokens
        self.open += children

    def joined(self) -> tuple[Thread, ...]:
        """Join all open children; they stay in the record."""
        children, self.open = tuple(self.open), []
        meanwhile = tuple(self.generated - child.born for child in children)
        if children:
            self._log.append(_JoinedThreads(children, meanwhile))
            pairs = zip(children, meanwhile, strict=True)
            self._path += max(max(0, child.own_path_tokens - own) for child, own in pairs)
        return children

    def move(self, state: ThreadState, reason: str = "") -> None:
        """Change to `state`. Raises: `InternalError` for a transition that does not exist."""
        if state not in _AFTER.get(self.state, ()):
            raise InternalError(f"{self.id} cannot go from {self.state.value} to {state.value}")
        self.state = state
        self.reason = reason or self.reason

    def record(self) -> ThreadRecord:
        """The thread and its descendants as a record."""
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
