"""The tree of threads as a file: everything in order, nothing that does anything."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.hostile import ALL, FORBIDDEN
from weft.cli.threads.trace_file import escape_markup, write_trace
from weft.reasoning.thought import (
    Sample,
    Thought,
    ThoughtCounts,
    ThreadFork,
    ThreadRecord,
    ThreadSegment,
    ThreadState,
)


def text_of(thought: Thought, tmp_path: Path, name: str = "t.md") -> str:
    write_trace(tmp_path / name, "chorus", "Why?", thought)
    return (tmp_path / name).read_text("utf-8")


def test_a_thread_goes_on_after_its_fork(tmp_path: Path) -> None:
    left = ThreadRecord("root/l", segments=(ThreadSegment((1,), "left"),), result="left")
    right = ThreadRecord(
        "root/r",
        state=ThreadState.FAILED,
        reason="no ![x](http://evil)",
        segments=(ThreadSegment((2,), "righ", True, "header"),),
        result="nothing",
    )
    parts = (ThreadSegment((3,), "before"), ThreadFork((left, right)), ThreadSegment((4,), "after"))
    tree = ThreadRecord("root", segments=parts, result="after")
    text = text_of(Thought("after", tree=tree, counts=ThoughtCounts(4), why="it ended"), tmp_path)
    order = ["before", "forked into 2", "root/l", "left", "root/r", "goes on after", "after"]
    places = [text.index(word, text.index("## Threads")) for word in order]
    assert places == sorted(places)
    assert text.count("\nleft\n") == 1, "what a thread returned is not told twice"
    assert "It returned:" in text[text.index("root/r") :]
    assert "`no ![x](http://evil)`" in text, "markup works in no line of ours"
    assert "written by the runtime (`header`)" in text


def test_samples_are_listed_with_their_answers(tmp_path: Path) -> None:
    samples = (Sample(0, "It is 4.", "4", 5, "finished"), Sample(1, "Hm", None, 1, "cancelled"))
    text = text_of(Thought("4", samples=samples), tmp_path)
    assert "### sample 0 · finished · 5 tokens · answer `4`" in text
    assert "### sample 1 · cancelled · 1 tokens\n" in text


def test_every_text_is_harmless_in_both_forms(tmp_path: Path) -> None:
    record = ThreadRecord(
        ALL, ALL, ALL, ThreadState.DONE, ALL, 1, (ThreadSegment((1,), ALL, True, ALL),), ALL
    )
    thought = Thought(
        ALL,
        key=ALL,
        tree=ThreadRecord("r", segments=(ThreadFork((record,)),)),
        samples=(Sample(0, ALL, ALL, 1, "finished"),),
        lost=ALL,
        why=ALL,
    )
    for name in ("t.md", "t.JSON"):
        text = text_of(thought, tmp_path, name)
        assert not set(text) & set(FORBIDDEN)
        assert "<script" not in text
    assert json.loads(text)["tree"]["segments"][0]["fork"][0]["state"] == "done"


def test_what_a_tag_is_and_what_is_not() -> None:
    for tag in ("<|im_end|>", "</think>", "<Thread>", "<!-- x -->", "<\uff5cend\uff5c>", "[INST]"):
        assert tag[1:] in escape_markup(tag)
        assert tag not in escape_markup(tag)
    for plain in ("1 < 2", "a <- b", "x <= y", "[1]", "list[int]", "<3"):
        assert escape_markup(plain) == plain
