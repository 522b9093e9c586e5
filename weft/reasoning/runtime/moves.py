"""The moves of a grammar: what to write, how a context begins, what to do next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from weft.core.values import Message


@dataclass(frozen=True, slots=True)
class ControlTag:
    """A tag of a protocol, as written; a special token where the model has it."""

    text: str


@dataclass(frozen=True, slots=True)
class ProtocolText:
    """Trusted text of the protocol itself."""

    text: str


@dataclass(frozen=True, slots=True)
class UntrustedText:
    """Text of a user, a document or a model, encoded so that it contains no tag.

    With `max_tokens` only the last so many tokens of it.
    """

    text: str
    max_tokens: int | None = None


Part: TypeAlias = ControlTag | ProtocolText | UntrustedText | tuple[int, ...]
"""A tuple of ints is token ids, as they were generated."""

Parts: TypeAlias = tuple[Part, ...]
Piece: TypeAlias = ControlTag | str
"""A piece of a model's output: a tag of the protocol, or text between tags."""


def pieces_text(pieces: tuple[Piece, ...]) -> str:
    """The text of `pieces`, including tags."""
    return "".join(piece if isinstance(piece, str) else piece.text for piece in pieces)


Inherit = Literal["full", "prompt", "none"]
Ended = Literal["stop", "end", "length", "spent", "failed"]


@dataclass(frozen=True, slots=True)
class Opening:
    """The beginning of a context: a conversation, if any, followed by `parts`."""

    messages: tuple[Message, ...] = ()
    parts: Parts = ()


@dataclass(frozen=True, slots=True)
class ParsedOutput:
    """The model's output since the runtime last wrote into the thread.

    `ended`: stop, at the stop text or tag `stop`; end, by itself; length, at the limit of the
    thread or the window; spent, no tokens are left; failed, the call failed.
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
    """A requested thread. Its context is what it inherits, followed by `messages` and `header`.

    `key` names it among its siblings; a second one of a key is omitted. inherit: full, all of its
    parent's context, up to the last `until` where that is a text; prompt, that of its parent's
    prompt; none. It generates at most `max_tokens`
    within `timeout_s`. Seeds of siblings differ where `seed` is None. `state` is the grammar's.
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
    until: str = ""


@dataclass(frozen=True, slots=True)
class Continue:
    """Write `parts` into the context, and decode further.

    `cut`: first drop the last occurrence of this tag or text after the prompt, and everything after
    it. At most `max_tokens` until the next pause.
    """

    parts: Parts = ()
    cut: str | None = None
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class ForkMove:
    """Start `children`, then join them in this order.

    `enough`: when so many have ended by themselves the others are cut off. `detach`: the parent
    continues meanwhile, until `Sync`. `appends`: the join puts all their text into the parent's
    context, so that together they must fit into its window. `cut` and `parts`: as in `Continue`,
    before the fork, even if it is refused.
    """

    children: tuple[ChildSpec, ...]
    enough: int | None = None
    detach: bool = False
    appends: bool = True
    parts: Parts = ()
    cut: str | None = None


@dataclass(frozen=True, slots=True)
class Sync:
    """Wait for the detached children and join them. Without any: continue with `otherwise`."""

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
    """The output fits no rule. The first time in a thread: continue after `parts`, the repair.

    After that the thread must end: see `ProtocolGrammar.conclude`.
    """

    reason: str
    parts: Parts = ()


GO_ON = Continue()
Move: TypeAlias = Continue | ForkMove | Sync | Return | FinalAnswer | Malformed
