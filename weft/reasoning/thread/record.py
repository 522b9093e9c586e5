"""What a thread did, as a tree of plain values for reading, tracing and counting. Runs nothing."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any


class ThreadState(Enum):
    """Where a thread is in its life; the last four are ends."""

    READY = "ready"
    DECODING = "decoding"
    FORKING = "forking"
    WAITING = "waiting"
    JOINING = "joining"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    CONTEXT_FULL = "context full"

    @property
    def ended(self) -> bool:
        """Whether a thread in this state is over."""
        return self in _ENDS


_ENDS = frozenset(
    (ThreadState.DONE, ThreadState.FAILED, ThreadState.CANCELLED, ThreadState.CONTEXT_FULL)
)


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of a thread's context after its prompt, special tokens spelt out in `text`.

    `forced`: the runtime wrote it (a header, a join, a repair), not the model. `role`: what for.
    `tokens`: how many it has, where the client hides their ids; None: as many as there are ids.
    """

    token_ids: tuple[int, ...]
    text: str
    forced: bool = False
    role: str = ""
    tokens: int | None = None

    @property
    def count(self) -> int:
        """How many tokens this is."""
        return len(self.token_ids) if self.tokens is None else self.tokens


@dataclass(frozen=True, slots=True)
class Fork:
    """Where a thread's children were joined, in declared order, whatever order they ended in.

    `meanwhile`: tokens that the thread itself wrote beside each of them (empty: none).
    """

    children: tuple[ThreadRecord, ...]
    meanwhile: tuple[int, ...] = ()

    @property
    def critical_path_tokens(self) -> int:
        """What its longest child adds to the critical path of the thread."""
        beside = self.meanwhile or (0,) * len(self.children)
        pairs = zip(self.children, beside, strict=True)
        return max((max(0, child.critical_path_tokens - own) for child, own in pairs), default=0)


@dataclass(frozen=True, slots=True)
class ThreadRecord:
    """One thread and all below it. `key` names it among its siblings, `role` says what it is for.

    `state` is its end and `reason` says why in words. `result` is what it returned to its parent.
    """

    id: str
    role: str = "thread"
    key: str = ""
    state: ThreadState = ThreadState.DONE
    reason: str = ""
    prompt_tokens: int = 0
    segments: tuple[Segment | Fork, ...] = ()
    result: str = ""

    @property
    def text(self) -> str:
        """What was written in this thread, by the model and by the runtime; not its children."""
        return "".join(part.text for part in self.segments if isinstance(part, Segment))

    @property
    def generated_tokens(self) -> int:
        """How many tokens the model wrote in this thread itself."""
        own = (part for part in self.segments if isinstance(part, Segment))
        return sum(part.count for part in own if not part.forced)

    @property
    def forks(self) -> tuple[Fork, ...]:
        """The forks of this thread, in order."""
        return tuple(part for part in self.segments if isinstance(part, Fork))

    @property
    def critical_path_tokens(self) -> int:
        """Generated tokens of this thread, and of each fork those of its longest child."""
        return self.generated_tokens + sum(fork.critical_path_tokens for fork in self.forks)

    def as_json(self) -> dict[str, Any]:
        """The tree made of what JSON has."""
        return {
            "id": self.id,
            "role": self.role,
            "key": self.key,
            "state": self.state.value,
            "reason": self.reason,
            "prompt_tokens": self.prompt_tokens,
            "segments": [_part_as_json(part) for part in self.segments],
            "result": self.result,
        }


def _part_as_json(part: Segment | Fork) -> dict[str, Any]:
    if isinstance(part, Fork):
        return {"fork": [child.as_json() for child in part.children]}
    return {
        "text": part.text,
        "tokens": part.count,
        "token_ids": list(part.token_ids),
        "forced": part.forced,
        "role": part.role,
    }
