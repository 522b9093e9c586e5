"""PASTA (arXiv 2502.11517): the text continues while promised parts of it are written in parallel.

`<promise topic="..." tokens="80"/>` starts a thread and does not wait; `<sync/>` waits for all
running threads and puts their texts into the context. In the answer they replace their promises.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from weft.core.generated_text import without_thought
from weft.core.ports import ModelClient
from weft.reasoning.options import ThinkOptions, read_settings
from weft.reasoning.protocols.blocks import FORMAT, FORMATS, THINK, is_published, without
from weft.reasoning.question import Question, conversation, question_text
from weft.reasoning.runtime import GrammarStrategy
from weft.reasoning.runtime.grammar import AppendJoin, ProtocolGrammar
from weft.reasoning.runtime.moves import (
    ChildSpec,
    Continue,
    ControlTag,
    ForkMove,
    Move,
    Opening,
    ParsedOutput,
    Part,
    Parts,
    ProtocolText,
    Return,
    Sync,
    UntrustedText,
)
from weft.reasoning.runtime.moves import FinalAnswer as Answer
from weft.reasoning.runtime.thread import Thread
from weft.reasoning.strategy import Strategy

PROMISE: Final = "<promise"
SYNC: Final = "<sync/>"
ASYNC: Final = "<async>"
ASYNC_END: Final = "</async>"
_END: Final = "/>"

_TOPIC: Final = re.compile(r"""\btopic\s*=\s*(?:"([^"\n]{1,300})"|'([^'\n]{1,300})')""")
_TOKENS: Final = re.compile(r"""\btokens\s*=\s*["']?(\d{1,6})""")
_THOUGHT: Final = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)
_WORDS: Final = re.compile(r"\w+")
_SLACK: Final = 2
"""The factor by which a thread may exceed the tokens of its promise."""

_LEAST: Final = 32
_BEFORE, _NOW, _OPEN, _PLACES, _ENDED = "before", "now", "open", "places", "ended"


class _PromisePlace(NamedTuple):
    """The range of a promise in the main text, and the key of its thread."""

    start: int
    end: int
    key: str


PROMPT_VERSION: Final = "pasta-1"
_RULES: Final = """\
You write an answer together with helpers, who write at the same time as you. Where a part of the \
answer can be written without the other parts, do not write it: put a promise in its place, and go \
on at once with what comes after it. A helper writes what you promised, between <async> and \
</async>, and nothing else. Put <sync/> where you have to read what was promised before you can go \
on, and at the end. Never write what you promised yourself. For the question "Compare cats and \
dogs" you would write:

Both are popular pets.
<promise topic="what cats are like" tokens="60"/>
<promise topic="what dogs are like" tokens="60"/>
<sync/>
So cats suit people with little time."""
_LOST: Final = (
    "the model was told about promises, not trained to make them where they pay, and the tags are"
    " plain text"
)


class Pasta(ProtocolGrammar):
    """Promises fork without waiting. A promise with an earlier topic is plain text."""

    name = "pasta"
    lost_by_prompt = _LOST
    tags = (PROMISE, SYNC, ASYNC, ASYNC_END)
    also = THINK

    def opening(self, question: Question, *, prompted: bool) -> Opening:
        return Opening(conversation(question, _RULES if prompted else "", question_text(question)))

    def stops(self, thread: Thread) -> tuple[str, ...]:
        if thread.depth:
            return (ASYNC_END, PROMISE, SYNC)
        return (_END, "\n") if thread.memory.get(_OPEN) else (PROMISE, SYNC)

    def classify(self, thread: Thread, output: ParsedOutput) -> Move:
        if thread.depth:
            return Return(_promise_text(thread))
        memory = thread.memory
        memory[_NOW] = output.text
        was_open, memory[_OPEN] = memory.get(_OPEN), output.stop == PROMISE
        promised = self._promise(thread, made=output.stop == _END) if was_open else Continue()
        if output.ended != "stop":
            memory[_ENDED] = True
            return Sync(Answer(self.answer(thread)))
        return Sync() if output.stop == SYNC else promised

    def _promise(self, thread: Thread, *, made: bool) -> Move:
        """Fork the promise that has just ended, unless it is not `made`, or has no new topic.

        The answer replaces each promise by the text of its thread.
        """
        text = _text(thread)
        start = text.rindex(PROMISE)
        places: list[_PromisePlace] = thread.memory.setdefault(_PLACES, [])
        words = _topic(text[start:]) if made else ""
        if not words or any(place.key == words for place in places):
            places.append(_PromisePlace(start, len(text), ""))
            return Continue()
        places.append(_PromisePlace(start, len(text), words))
        tokens = _TOKENS.search(text, start)
        most = None if tokens is None else max(_LEAST, _SLACK * int(tokens[1]))
        lead = f"\n{words[0].upper()}{words[1:]}: " if thread.prompted else ""
        header = (ProtocolText("\n"), ControlTag(ASYNC), UntrustedText(lead))
        child = ChildSpec(words, header=header, role="promise", max_tokens=most, state=lead)
        return ForkMove((child,), detach=True)

    def close(self, child: Thread) -> Parts:
        return () if child.text.endswith(ASYNC_END) else (ControlTag(ASYNC_END),)

    def join(self, parent: Thread, children: Sequence[Thread]) -> AppendJoin:
        """Append the promised texts after `<sync/>`, in the order of the promises."""
        memory = parent.memory
        memory[_BEFORE] = memory.get(_BEFORE, "") + memory.pop(_NOW, "")
        parts: list[Part] = []
        for child in children:
            parts += (
                ProtocolText("\n"),
                ControlTag(ASYNC),
                UntrustedText(str(child.spec.state)),
                child.body,
            )
        parts.append(ProtocolText("\n"))
        return AppendJoin(
            tuple(parts), Answer(self.answer(parent)) if memory.get(_ENDED) else Continue()
        )

    def answer(self, thread: Thread) -> str:
        """The text with promises replaced by their threads' texts, or removed without one."""
        texts = {child.key: _promise_text(child) for child in thread.children}
        text, parts, end = _text(thread), [], 0
        for place in thread.memory.get(_PLACES, ()):
            parts += [text[end : place.start], texts.get(place.key, "")]
            end = place.end
        whole = _THOUGHT.sub("", "".join((*parts, text[end:])))
        return without(without_thought(whole), self.tags)


def _promise_text(child: Thread) -> str:
    """The text for a promise; it ends before any promise inside it."""
    text = re.split(rf"{ASYNC_END}|{PROMISE}|{SYNC}", child.text, maxsplit=1)[0]
    return without(without_thought(_THOUGHT.sub("", text)), (ASYNC,))


def _text(thread: Thread) -> str:
    """The main thread's own text, without joined texts."""
    return f"{thread.memory.get(_BEFORE, '')}{thread.memory.get(_NOW, '')}"


def _topic(promise: str) -> str:
    """The words of the topic of `promise`; empty: there is none."""
    topic = _TOPIC.search(promise)
    return " ".join(_WORDS.findall((topic[1] or topic[2]).casefold())) if topic else ""


def make(model: ModelClient, options: ThinkOptions) -> Strategy:
    """The strategy `pasta`. Setting: `format`, see `BlockGrammar.configured`."""
    grammar = Pasta()
    grammar.trained = is_published(
        read_settings("pasta", options.settings, FORMAT, choices=FORMATS)
    )
    return GrammarStrategy(grammar, model, options)
