"""The base of protocols of tagged blocks: where they pause, close and answer."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, Self

from weft.reasoning.options import ThinkOptions, read_settings
from weft.reasoning.question import Question, conversation, question_text
from weft.reasoning.runtime.grammar import ProtocolGrammar
from weft.reasoning.runtime.moves import (
    ChildSpec,
    Continue,
    ControlTag,
    ForkMove,
    Move,
    Opening,
    ParsedOutput,
    Parts,
    ProtocolText,
    Return,
)
from weft.reasoning.runtime.moves import FinalAnswer as Answer
from weft.reasoning.runtime.thread import Thread

_NUMBER: Final = re.compile(r"\s*(\d{1,3}(?:\.\d{1,3}){0,5})\s*[:.)]")
_LINE: Final = re.compile(r"^[ \t]*(\d{1,3}(?:\.\d{1,3}){0,5})[ \t]*[:.)]", re.MULTILINE)
THINK: Final = ("<think>", "</think>")
"""The tags of models that think before they answer."""


FORMAT: Final = {"format": "auto"}
FORMATS: Final = {"format": ("auto", "published")}
"""The setting that names the format of the model's own training."""


def is_published(settings: Mapping[str, Any]) -> bool:
    """Whether the model was trained with the published format, so that nothing is prompted."""
    return bool(settings["format"] == "published")


def tags_of(pairs: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """The tags of `pairs` as one sequence."""
    return tuple(tag for pair in pairs for tag in pair)


def numbers(output: ParsedOutput, block: str, item: str) -> tuple[str, ...]:
    """The numbers of the items in the last `block`: `<item> 1: ...`, or lines that begin so.

    In the order written, each once; where items are tagged, lines do not count.
    """
    inside = output.after(block)
    tagged = [
        match.group(1)
        for tag, text in pairwise(inside)
        if tag == ControlTag(item) and isinstance(text, str) and (match := _NUMBER.match(text))
    ]
    words = "".join(piece if isinstance(piece, str) else "\n" for piece in inside)
    return tuple(dict.fromkeys(tagged or _LINE.findall(words)))


def closers(text: str, pairs: Sequence[tuple[str, str]]) -> Parts:
    """Closing tags for the blocks of `pairs` that are open at the end of `text`, inner ones first.

    A closing tag also closes the blocks inside; one without an open block is ignored.
    """
    closing = dict(pairs)
    open_: list[str] = []
    for tag in re.findall("|".join(map(re.escape, tags_of(pairs))), text):
        if tag in closing:
            open_.append(closing[tag])
        elif tag in open_:
            del open_[len(open_) - 1 - open_[::-1].index(tag) :]
    return tuple(part for tag in reversed(open_) for part in (ProtocolText("\n"), ControlTag(tag)))


def answer_text(text: str, tags: Sequence[str]) -> str:
    """The text after the last block in `text`; where that is empty, the text inside it."""
    between = re.split("|".join(map(re.escape, (*tags, *THINK))), text)
    return next((part.strip() for part in reversed(between) if part.strip()), "")


def without(text: str, tags: Sequence[str]) -> str:
    """`text` without `tags`, stripped."""
    for tag in (*tags, *THINK):
        text = text.replace(tag, "")
    return text.strip()


class BlockGrammar(ProtocolGrammar):
    """A protocol with opening and closing tags in `pairs`; `rules` explain them in the prompt.

    A thread pauses at `fork_at`, after a list of `item`s. A child ends at `child_end`, which
    follows `before_end` where the runtime writes it. `nests`: children may fork too.

    Models that are not trained for the tags make typical mistakes. `opened`: the runtime writes
    `opener`, the beginning of their first block; a setting, by default `opened_default`.
    `past_fork`: where one of these tags follows items, or nothing does, `fork_at` was left out.
    `past_end`: where one of these follows in a child, its end was left out.
    """

    pairs: tuple[tuple[str, str], ...]
    rules: str
    fork_at: str
    item: ControlTag
    child_end: str
    before_end: str = ""
    opener: Parts
    past_fork: tuple[str, ...] = ()
    past_end: tuple[str, ...] = ()
    nests: bool = False
    opened_default: bool = False
    also: tuple[str, ...] = THINK

    def __init__(self, *, opened: bool = False, trained: bool = False) -> None:
        self.opened = opened
        self.trained = trained

    @classmethod
    def configured(cls, options: ThinkOptions) -> Self:
        """A grammar with the settings `opened` and `format`. Raises: `BuildError` for others.

        `format`: published, for a model trained with these tags, whether they are special tokens or
        plain text; auto, only where all of them are special tokens.
        """
        defaults = {"opened": cls.opened_default, **FORMAT}
        given = read_settings(cls.name, options.settings, defaults, choices=FORMATS)
        return cls(opened=given["opened"], trained=is_published(given))

    @abstractmethod
    def children(self, output: ParsedOutput) -> tuple[ChildSpec, ...]:
        """The threads for an output that ended with `fork_at`."""

    def opening(self, question: Question, *, prompted: bool) -> Opening:
        return Opening(
            conversation(question, self.rules if prompted else "", question_text(question))
        )

    def first(self, thread: Thread) -> Move:
        opened = self.opened and thread.prompted and not thread.depth
        return Continue(self.opener if opened else ())

    def stops(self, thread: Thread) -> tuple[str, ...]:
        forks = (self.fork_at, *(self.past_fork if thread.prompted else ()))
        if not thread.depth:
            return forks
        ends = (self.child_end, *(self.past_end if thread.prompted else ()))
        return (*forks, *ends) if self.nests else ends

    def classify(self, thread: Thread, output: ParsedOutput) -> Move:
        stop = output.stop
        if stop == self.fork_at:
            children = self.children(output)
            return ForkMove(children) if children else Continue()
        repaired = self._repair(thread, output)
        if repaired is not None:
            return repaired
        if thread.depth and stop in (None, self.child_end):
            return Return(thread.text)
        if thread.depth and stop in self.past_end:
            return Return(thread.text.removesuffix(stop or ""), cut=stop)
        return Continue() if stop or output.ended == "length" else Answer(self.answer(thread))

    def _repair(self, thread: Thread, output: ParsedOutput) -> ForkMove | None:
        """The fork of an output that lists items, but continues, or ends, without `fork_at`."""
        forks = thread.prompted and bool(self.past_fork) and (self.nests or not thread.depth)
        if not forks or output.stop == self.child_end or output.ended == "length":
            return None
        at = max((i for i, piece in enumerate(output.pieces) if piece == self.item), default=None)
        children = () if at is None else self.children(output)
        if not children:
            return None
        own = next(pair for pair in self.pairs if pair[0] == self.item.text)
        behind = (
            p.text for p in output.pieces[at:] if isinstance(p, ControlTag) and p.text not in own
        )
        return ForkMove(children, cut=next(behind, None), parts=(ControlTag(self.fork_at),))

    def close(self, child: Thread) -> Parts:
        if child.text.endswith(self.child_end):
            return ()
        return (
            *closers(child.text, self.pairs),
            ProtocolText(self.before_end),
            ControlTag(self.child_end),
        )

    def conclude(self, thread: Thread) -> Parts:
        pairs = (*self.pairs, *zip(self.also[::2], self.also[1::2], strict=True))
        return (*closers(thread.text, pairs), ProtocolText(self.lead))

    def answer(self, thread: Thread) -> str:
        return answer_text(thread.text, self.tags)
