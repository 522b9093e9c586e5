"""What a runtime writes into a thread's context: tags, its own words, and what others said."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from weft.core.values import Message


@dataclass(frozen=True, slots=True)
class ControlTag:
    """A tag of a protocol, named by how it is written: a special token where the model has it."""

    text: str


@dataclass(frozen=True, slots=True)
class ProtocolText:
    """Words of the protocol itself, trusted."""

    text: str


@dataclass(frozen=True, slots=True)
class UntrustedText:
    """Words of a user, a document or a model: written so that no tag can come of them.

    At most `max_tokens` of them, the last ones.
    """

    text: str
    max_tokens: int | None = None


Part: TypeAlias = ControlTag | ProtocolText | UntrustedText | tuple[int, ...]
"""A tuple of ints is token ids, exactly as they were generated."""

Parts: TypeAlias = tuple[Part, ...]
Piece: TypeAlias = ControlTag | str
"""What a model wrote, taken apart: the protocol's tags, and the text between them."""


def pieces_text(pieces: tuple[Piece, ...]) -> str:
    """The text of `pieces`, tags spelt out."""
    return "".join(piece if isinstance(piece, str) else piece.text for piece in pieces)


Inherit = Literal["full", "prompt", "none"]
Ended = Literal["stop", "end", "length", "spent", "failed"]


@dataclass(frozen=True, slots=True)
class Opening:
    """How a context begins: a conversation, if any, and then `parts`."""

    messages: tuple[Message, ...] = ()
    parts: Parts = ()


@dataclass(frozen=True, slots=True)
class ParsedOutput:
    """What the model wrote since the runtime last wrote something into the thread.

    `ended`: stop, at the stop text or tag `stop`; end, by itself; length, at the thread's limit or
    the window's; spent, no tokens are left; failed, the model could not be asked.
    """

    pieces: tuple[Piece, ...]
    ended: Ended
    stop: str | None = None

    @property
    def text(self) -> str:
        return pieces_text(self.pieces)

    def after(self, tag: str) -> tuple[Piece, ...]:
        """The pieces after the last `tag`; all of them without one."""
        for index in range(len(self.pieces) - 1, -1, -1):
            if self.pieces[index] == ControlTag(tag):
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
class ForkMove:
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

    otherwise: Continue | FinalAnswer = Continue()


@dataclass(frozen=True, slots=True)
class Return:
    """The thread is done; `text` is its message to the parent. `cut` as in `Continue`."""

    text: str = ""
    cut: str | None = None


@dataclass(frozen=True, slots=True)
class FinalAnswer:
    """The root is done; `text` is its answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Malformed:
    """What was written fits no rule. The first time in a thread: go on after `parts`, the repair.

    After that the thread has to come to its end: see `Grammar.conclude`.
    """

    reason: str
    parts: Parts = ()


GO_ON = Continue()
Move: TypeAlias = Continue | ForkMove | Sync | Return | FinalAnswer | Malformed
