"""The thread tree of a thought with all its text, as a file: Markdown, or JSON.

Its text cannot control a terminal, a browser or a tokenizer: see `escape_markup`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from weft.cli.files import writing
from weft.cli.text import clean, one_line
from weft.cli.threads.report import citations, summary, thought_data
from weft.core.redaction import hidden
from weft.reasoning.thought import Thought, ThreadFork, ThreadRecord, ThreadSegment

_TAG: Final = re.compile(r"<(?=[|\uff5c/!?A-Za-z])")
_SQUARE: Final = re.compile(r"\[(?=/?(?:INST|/?SYS|/?TOOL|/?AVAILABLE)[A-Z_]*\])")


def escape_markup(text: str) -> str:
    """`text` without control characters and tags.

    The characters that open a tag, as in `<|im_end|>`, `</think>` and `[INST]`, are replaced by
    lookalikes: U+2039 and U+2045.
    """
    return _SQUARE.sub("\u2045", _TAG.sub("\u2039", clean(text)))


def escape_json_texts(value: Any) -> Any:
    """JSON data with all texts escaped."""
    if isinstance(value, str):
        return escape_markup(value)
    if isinstance(value, Mapping):
        return {key: escape_json_texts(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [escape_json_texts(item) for item in value]
    return value


_MOST_HASHES = 6
_BACKTICKS = re.compile("`+")


def write_trace(path: Path, strategy: str, question: str, thought: Thought) -> None:
    """Write a thought: JSON where `path` ends in .json, else Markdown. Raises: `InputError`."""
    _write(path, (_json if _is_json(path) else _markdown)(strategy, question, thought))


def write_failure(path: Path, strategy: str, question: str, why: str) -> None:
    """Write why there is no thought, replacing an older file. Raises: `InputError`."""
    if _is_json(path):
        data = {"strategy": strategy, "question": question, "answer": None, "why": why}
        _write(path, _as_text(data))
    else:
        lines = [f"# A thought by {_inline(strategy)}", "", f"No answer: {_inline(why, 1_000)}", ""]
        _write(path, "\n".join([*lines, "## Question", "", *_fenced(question)]))


def _is_json(path: Path) -> bool:
    return path.suffix.lower() == ".json"


def _write(path: Path, text: str) -> None:
    with writing(path):
        path.write_text(hidden(text), encoding="utf-8")


def _as_text(data: object) -> str:
    return json.dumps(escape_json_texts(data), ensure_ascii=False, indent=2) + "\n"


def _json(strategy: str, question: str, thought: Thought) -> str:
    data = {
        "strategy": strategy,
        "question": question,
        "answer": thought.answer,
        **thought_data(thought),
        "tree": None if thought.tree is None else thought.tree.as_json(),
    }
    return _as_text(data)


def _markdown(strategy: str, question: str, thought: Thought) -> str:
    lines = [f"# A thought by {_inline(strategy)}", ""]
    lines += [f"- {_inline(line, 1_000)}" for line in summary(strategy, thought)]
    lines += ["", "## Question", "", *_fenced(question), "## Answer", "", *_fenced(thought.answer)]
    if thought.evidence:
        lines += ["## Sources", "", *(f"- {_inline(line, 300)}" for line in citations(thought)), ""]
    if thought.tree is not None:
        lines += ["## Threads", "", *_thread(thought.tree, 3)]
    if thought.samples:
        lines += ["## Samples", ""]
    for sample in thought.samples:
        title = [f"sample {sample.index}", sample.status, f"{sample.tokens:,} tokens"]
        title += [] if sample.key is None else [f"answer {_inline(sample.key)}"]
        lines += [f"### {' · '.join(title)}", "", *_fenced(sample.text)]
    return "\n".join(lines)


def _thread(record: ThreadRecord, level: int) -> Iterator[str]:
    """One thread: its segments in order, and its children at their forks."""
    title = [_inline(record.id), record.state.value]
    title.append(f"{record.generated_tokens:,} tokens of its own")
    yield f"{'#' * min(level, _MOST_HASHES)} {' · '.join(title)}"
    yield ""
    if record.reason:
        yield _inline(record.reason, 300)
        yield ""
    for number, part in enumerate(record.segments, 1):
        if isinstance(part, ThreadSegment):
            yield from _segment(part, number)
            continue
        yield from _fork(part, level)
        if number < len(record.segments):
            yield f"{'#' * min(level, _MOST_HASHES)} {title[0]} goes on after the fork"
            yield ""
    if record.result.strip() not in record.text:
        yield "It returned:"
        yield ""
        yield from _fenced(record.result)


def _segment(segment: ThreadSegment, number: int) -> Iterator[str]:
    who = "written by the runtime" if segment.forced else "written by the model"
    role = f" ({_inline(segment.role)})" if segment.role else ""
    yield f"{number}. {who}{role}:"
    yield ""
    yield from _fenced(segment.text)


def _fork(fork: ThreadFork, level: int) -> Iterator[str]:
    yield f"It forked into {len(fork.children)}:"
    yield ""
    for child in fork.children:
        yield from _thread(child, level + 1)


def _inline(text: str, width: int = 120) -> str:
    """The beginning of the text on one line, without markup."""
    return f"`{one_line(escape_markup(text), width).replace('`', chr(39))}`"


def _fenced(text: str) -> list[str]:
    """The text in a fence that its content cannot close."""
    text = escape_markup(text)
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}text", text, fence, ""]
