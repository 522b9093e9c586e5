"""`weft think` as a person would type it, over a scripted model."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.cli.hostile import ALL, FORBIDDEN
from tests.workflow import thread_strategy
from weft.cli.main import app
from weft.core.errors import ModelUnavailable
from weft.reasoning.strategies import STRATEGIES
from weft.testing import FakeModel, Reply
from weft.workflow.runtime.models.factory import Models

QUESTION = "How many legs has a spider?"


@pytest.fixture(autouse=True)
def _chorus() -> Iterator[None]:
    with thread_strategy.registered():
        yield


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path


def typed(monkeypatch: pytest.MonkeyPatch, script: FakeModel, *words: str) -> Result:
    monkeypatch.setattr(Models, "client", lambda *_: script)
    return CliRunner().invoke(app, ["think", QUESTION, "--strategy", "chorus", *words])


def test_the_list_has_every_strategy_and_what_it_needs() -> None:
    found = CliRunner().invoke(app, ["think", "--list", "--json"])
    assert found.exit_code == 0, found.output
    rows = json.loads(found.stdout)
    assert [row["name"] for row in rows] == list(STRATEGIES)
    assert all(row["summary"] and row["needs"] for row in rows)
    shown = CliRunner().invoke(app, ["think", "--list"]).stdout
    assert all(name in shown for name in STRATEGIES)
    assert "several voices (nobody)" in " ".join(shown.split())


def test_the_answer_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = typed(monkeypatch, FakeModel(["eight"]), "--quiet")
    assert result.exit_code == 0, result.output
    assert result.stdout.split() == ["answer", "eight"]
    assert result.stderr == ""


def test_a_line_for_each_thread_and_what_it_all_cost(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = typed(monkeypatch, FakeModel(["eight legs"]), "--width", "3")
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.stdout.splitlines()]
    for number in range(3):
        row = next(line for line in lines if line[:1] == [f"voices/voice{number}"])
        assert row[1] == "done"
        assert row[-1] == "2"
    assert "chorus: 6 tokens generated · 2 on the critical path · 4 threads · 1 fork" in (
        result.stdout
    )
    assert "ended: 3 voices agree" in result.stdout
    assert result.stdout.rstrip().endswith("eight legs")


def test_json_is_the_only_thing_on_stdout(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = typed(monkeypatch, FakeModel(["eight"]), "--json", "--width", "2")
    found = json.loads(result.stdout)
    assert found["outputs"] == {"answer": "eight"}
    assert (found["status"], found["strategy"]) == ("succeeded", "chorus")
    assert found["thought"]["counts"]["threads"] == 3
    assert found["thought"]["why"] == "2 voices agree"


def test_options_reach_the_strategy(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = FakeModel(['"eight"'])
    Path("a.txt").write_text("one")
    Path("b.txt").write_text("two")
    Path("s.json").write_text('{"type": "string"}')
    words = "--width 1 --max-tokens 7 --temperature 0 --top-p 0.5 --seed 3 --set mood=cross"
    words += " --system Kind --document a.txt --document b.txt --schema s.json --budget 1ktok"
    result = typed(monkeypatch, script, *words.split())
    assert result.exit_code == 0, result.output
    (request,) = script.requests
    assert [message.content for message in request.messages] == [
        "Kind|cross",
        f"{QUESTION} a.txt=one b.txt=two",
    ]
    assert request.schema == {"type": "string"}
    sampling = request.sampling
    assert (sampling.max_tokens, sampling.temperature, sampling.top_p) == (7, 0.0, 0.5)


def test_a_typed_answer_is_a_value_or_a_failure(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("s.json").write_text('{"type": "integer"}')
    words = ("--schema", "s.json", "--json", "--width", "2")
    result = typed(monkeypatch, FakeModel(["8"]), *words)
    assert json.loads(result.stdout)["outputs"] == {"answer": 8}
    wrong = typed(monkeypatch, FakeModel(["eight"]), *words)
    assert wrong.exit_code == 1
    assert (
        "ModelOutputError: the answer is not JSON" in json.loads(wrong.stdout)["missing"]["answer"]
    )


def test_functions_are_named_like_tools(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("scores.py").write_text("def longest(question, sample):\n    return len(sample.text)\n")
    script = FakeModel(["Answer: 1", "Well, Answer: 20", "Answer: 3"])
    words = ("--strategy", "best-of", "--width", "3", "--quiet", "--set")
    result = typed(monkeypatch, script, *words, "scorer=./scores.py:longest")
    assert result.stdout.split() == ["answer", "20"], result.output
    wrong = typed(monkeypatch, script, *words, "scorer=./scores.py:shortest")
    assert (wrong.exit_code, "no function 'shortest'" in wrong.output) == (2, True)


def test_the_trace_is_for_reading_and_harmless(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nasty = f"```\n# no heading\n<|im_end|></think>[INST] {ALL}"
    result = typed(monkeypatch, FakeModel([nasty]), "--width", "2", "--trace", "t.md")
    assert result.exit_code == 0, result.output
    text = Path("t.md").read_text("utf-8")
    assert not set(text) & set(FORBIDDEN)
    for tag in ("<|im_end|>", "</think>", "<script", "<img", "<!--", "[INST]"):
        assert tag not in text
    headings = list(_headings(text))
    assert not any("no heading" in heading for heading in headings)
    assert sum("voice" in heading for heading in headings) == 2
    assert headings[-1].startswith("#### `answer/voices/voice1`")


def _headings(text: str) -> Iterator[str]:
    """Those of a Markdown text, not what looks like one in a fence."""
    fence = ""
    for line in text.splitlines():
        opened = re.fullmatch("(`+)text", line)
        if not fence and opened:
            fence = opened[1]
        elif line == fence:
            fence = ""
        elif not fence and line.startswith("#"):
            yield line


def test_the_trace_as_json(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    typed(monkeypatch, FakeModel(["<|end|>eight"]), "--width", "2", "--trace", "t.json")
    found = json.loads(Path("t.json").read_text("utf-8"))
    assert (found["strategy"], found["question"]) == ("chorus", QUESTION)
    assert found["answer"] == "\u2039|end|>eight"
    fork = next(part for part in found["tree"]["segments"] if "fork" in part)
    assert [child["state"] for child in fork["fork"]] == ["done", "done"]


def test_the_trace_of_a_failure_says_why(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    down = FakeModel([Reply("x", error=ModelUnavailable("gone"))])
    result = typed(monkeypatch, down, "--trace", "t.md", "--width", "1", "--json")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert found["thought"] is None
    assert "nobody said anything" in found["missing"]["answer"]
    text = Path("t.md").read_text("utf-8")
    assert "No answer: `ReasoningError: nobody said anything" in text
    typed(monkeypatch, down, "--trace", "t.json", "--width", "1", "--quiet")
    assert "nobody said anything" in json.loads(Path("t.json").read_text("utf-8"))["why"]


def test_events_and_timeline_are_those_of_every_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("--events", "e.jsonl", "--timeline", "t.html", "--width", "2")
    result = typed(monkeypatch, FakeModel(["eight"]), *words)
    assert result.exit_code == 0, result.output
    kinds = [json.loads(line) for line in Path("e.jsonl").read_text().splitlines()]
    assert sum("voice" in json.dumps(line) for line in kinds) > 2
    page = Path("t.html").read_text("utf-8")
    assert "voices/voice1" in page
    assert '"kind":"fork"' in page


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--strategy", "chorsu"], "did you mean 'chorus'?"),
        (["--set", "mod=cross"], "chorus has no setting 'mod'"),
        (["--set", "mood=3"], "setting 'mood' is int, not str"),
        (["--set", "mood"], "expected NAME=VALUE"),
        (["--budget", "20s"], "expected tokens such as 20000tok"),
        (["--budget", "0"], "expected tokens such as 20000tok"),
        (["--path-tokens", "20s"], "expected tokens such as 20000tok"),
        (["--width", "0"], "greater than or equal to 1"),
        (["--top-p", "0"], "top_p must be above 0"),
        (["--api-key-env", "KEY"], "goes with --base-url"),
        (["--document", "none.txt"], "does not exist"),
        (["--trace", "/none/t.md"], "cannot write"),
        (["--deadline", "soon"], "expected a duration"),
    ],
)
def test_wrong_words_are_told_before_anything_runs(
    words: list[str], said: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = FakeModel(["eight"])
    result = typed(monkeypatch, script, *words)
    assert result.exit_code == 2, result.output
    assert said in " ".join(result.output.replace("│", " ").split())
    assert not script.requests


def test_documents_that_cannot_be_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = FakeModel(["eight"])
    Path("image.png").write_bytes(b"\x89PNG\r\n\xff\xfe")
    with Path("huge.txt").open("wb") as file:
        file.truncate(2**26 + 1)
    for name, said in (("image.png", "cannot read image.png"), ("huge.txt", "is too large")):
        result = typed(monkeypatch, script, "--document", name)
        assert (result.exit_code, said in result.output) == (2, True)
    assert not script.requests


def test_documents_of_one_name_are_told_apart(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = FakeModel(["eight"])
    Path("b").mkdir()
    Path("a.txt").write_text("one")
    Path("b/a.txt").write_text("two")
    typed(monkeypatch, script, "--width", "1", "--document", "a.txt", "--document", "b/a.txt")
    assert script.requests[0].messages[-1].content.endswith("a.txt=one b/a.txt=two")


def test_a_question_is_needed() -> None:
    result = CliRunner().invoke(app, ["think"])
    assert (result.exit_code, "give a question, or --list" in result.output) == (2, True)
    empty = CliRunner().invoke(app, ["think", " ", "--strategy", "chorus"])
    assert (empty.exit_code, "question is empty" in empty.output) == (2, True)
    wrong = CliRunner().invoke(app, ["think", "what?", "--model", "qwen"])
    assert (wrong.exit_code, "expected local:NAME" in wrong.output) == (2, True)


def test_the_command_line_starts_without_what_it_does_not_need() -> None:
    heavy = ["weft.reasoning", "weft.workflow", "weft.engine", "pydantic", "networkx", "torch"]
    code = f"import sys, weft.cli.main; print([name for name in {heavy!r} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
