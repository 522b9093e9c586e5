"""A protocol as an object: where decoding pauses, what an output means, how children are joined.

Pure: a grammar decides and the runtime acts. It keeps nothing between calls; what it has to
remember of a thread goes into `Thread.memory`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from weft.core.values import Message
from weft.reasoning.parts import Parts, Piece, Tag, Text, spelt
from weft.reasoning.question import Question

if TYPE_CHECKING:
    from weft.reasoning.thread.thread import Thread

Inherit = Literal["full", "prompt", "none"]
Ended = Literal["stop", "end", "length", "spent", "failed"]


@dataclass(frozen=True, slots=True)
class Opening:
    """How a context begins: a conversation, if any, and then `parts`."""

    messages: tuple[Message, ...] = ()
    parts: Parts = ()


@dataclass(frozen=True, slots=True)
class Output:
    """What the model wrote since the runtime last wrote something into the thread.

    `ended`: stop, at the stop text or tag `stop`; end, by itself; length, at the thread's limit or
    the window's; spent, no tokens are left; failed, the model could not be asked.
    """

    pieces: tuple[Piece, ...]
    ended: Ended
    stop: str | None = None

    @property
    def text(self) -> str:
        """All of it, tags spelt out."""
        return spelt(self.pieces)

    def after(self, tag: str) -> tuple[Piece, ...]:
        """The pieces after the last `tag`; all of them without one."""
        for index in range(len(self.pieces) - 1, -1, -1):
            if self.pieces[index] == Tag(tag):
                return self.pieces[index + 1 :]
        return self.pieces


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """A thread that is wanted. Its context begins with what it inherits, then `messages`, `header`.

    `key` names it among its siblings; a second one of a key is left out. inherit: full, all of its
    parent's context; prompt, that of its parent's prompt; none. At most `max_tokens` are generated
    in it, within `timeout_s`. Seeds of siblings differ where `seed` is None. `state` is for the
    grammar.
    """

    key: str
    inherit: Inherit = "full"
    header: Parts = ()
    messages: tuple[Message, ...] = ()
    role: str = "thread"
    max_tokens: int | None = None
    timeout_s: float | None = None
    seed: int | None = None
    state: object = None


@dataclass(frozen=True, slots=True)
class Continue:
    """Go on decoding, once `parts` are written into the context.

    `cut`: first drop the last occurrence of this tag or text in what was written after the prompt,
    and all behind it. At most `max_tokens` until the next pause.
    """

    parts: Parts = ()
    cut: str | None = None
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Fork:
    """Start `children`, then join them in this order.

    `enough`: when so many have ended by themselves the others are cut off where they are. `detach`:
    the parent goes on meanwhile, until `Sync`. `appends`: the join puts all their text into the
    parent's context, so that together they must fit into its window. `cut` and `parts`: as in
    `Continue`, before anything else; also when the fork is refused.
    """

    children: tuple[ChildSpec, ...]
    enough: int | None = None
    detach: bool = False
    appends: bool = True
    parts: Parts = ()
    cut: str | None = None


@dataclass(frozen=True, slots=True)
class Sync:
    """Wait for the detached children and join them. Without any: go on with `otherwise`."""

    otherwise: Continue | Final = Continue()


@dataclass(frozen=True, slots=True)
class Return:
    """The thread is done; `text` is its message to the parent. `cut` as in `Continue`."""

    text: str = ""
    cut: str | None = None


@dataclass(frozen=True, slots=True)
class Final:
    """The root is done; `text` is its answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Malformed:
    """What was written fits no rule. The first time in a thread: go on after `parts`, the repair.

    After that the thread has to come to its end: see `Grammar.conclude`.
    """

    reason: str
    parts: Parts = ()


Move: TypeAlias = Continue | Fork | Sync | Return | Final | Malformed


@dataclass(frozen=True, slots=True)
class Append:
    """The parent goes on after `parts`."""

    parts: Parts
    then: Move = Continue()


@dataclass(frozen=True, slots=True)
class Splice:
    """The parent goes on after what `children` wrote, headers included, and then `tail`.

    The children do not see one another, the tail sees all: they begin at one position, and the tail
    after the end of the longest (Multiverse, arXiv 2506.09991). Where the model cannot place
    tokens, they follow one another as in `Append`.
    """

    children: tuple[Thread, ...]
    tail: Parts = ()
    then: Move = Continue()


@dataclass(frozen=True, slots=True)
class Replace:
    """The last `since` after the prompt, and all behind it, is replaced by `parts`."""

    since: str
    parts: Parts
    then: Move = Continue()


@dataclass(frozen=True, slots=True)
class NewRoot:
    """The parent goes on in a new context."""

    opening: Opening
    then: Move = Continue()


Joined: TypeAlias = Append | Splice | Replace | NewRoot


class Grammar(ABC):
    """The rules of one protocol. Methods are called with the thread that it is about.

    `marks` are its tags as they are written; a model in which they are no special tokens is told
    about them (`Thread.prompted`). `also` are tags that it uses where a model happens to have them.
    `lead` is what makes a thread answer at once.
    """

    name: str
    marks: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    lead: str = "\n\nFinal answer: "

    @abstractmethod
    def opening(self, question: Question, *, prompted: bool) -> Opening:
        """How the root begins. `prompted`: the model has no such tags and is told about them.

        The question's words go into messages as they are; the runtime guards them.
        """

    def first(self, thread: Thread) -> Move:  # noqa: ARG002 - for those that look at it
        """What a thread does before it has decoded anything."""
        return Continue()

    def stops(self, thread: Thread) -> tuple[str, ...]:  # noqa: ARG002
        """The tags and texts at which decoding pauses; they become part of the context."""
        return ()

    @abstractmethod
    def classify(self, thread: Thread, output: Output) -> Move:
        """What the output asks for. Never raises, whatever a model wrote."""

    def close(self, child: Thread) -> Parts:  # noqa: ARG002
        """What is missing at the end of a child, so that it can be joined."""
        return ()

    @abstractmethod
    def join(self, parent: Thread, children: Sequence[Thread]) -> Joined:
        """What comes of `children`, which have ended in whatever way, in declared order."""

    def refuse(self, thread: Thread, fork: Fork, reason: str) -> Move:  # noqa: ARG002
        """How `thread` goes on when it may not fork: depth, rounds or tokens are used up."""
        return Continue()

    def conclude(self, thread: Thread) -> Parts:  # noqa: ARG002
        """What makes `thread`, which can do no more, answer: closing tags, and a lead-in.

        Empty: it is not asked any more.
        """
        return (Text(self.lead),)

    def answer(self, thread: Thread) -> str:
        """The answer in a thread that was cut off: the best there is in what it wrote."""
        return thread.text.strip()
