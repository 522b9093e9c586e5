"""`weft optimise`: says what it would try, runs, shows and writes studies."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command_line import go_into, typed
from tests.golden_files import assert_golden
from weft import StudyResult
from weft.cli.studies.page import study_page
from weft.cli.studies.report import print_study
from weft.cli.text import clean
from weft.optimisation.result import (
    CaseChange,
    EditNote,
    FrontMember,
    Leak,
    ObjectiveFigure,
    ProposerNote,
    Spend,
    VerdictSummary,
)

FLOW = """\
# kept
name: sums
inputs: {a: integer}
nodes:
  route: {value: "{{ a }}"}
  total: {call: "./functions.py:total", with: {a: "{{ route }}", how: plain}}
outputs: {total: "{{ total }}"}
evaluation: {data: sums.csv, metrics: {right: exact}}
"""
USELESS = 'optimise: {knobs: {route: {optional: "{{ a + 0 }}"}}}\n'
FUNCTIONS = """\
def total(a: int, how: str) -> int:
    return a + 1
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go_into(tmp_path, monkeypatch)
    Path("functions.py").write_text(FUNCTIONS, encoding="utf-8")
    Path("sums.yaml").write_text(FLOW, encoding="utf-8")
    lines = ["a,expected,split"]
    splits = ("dev", "held_out", "held_out", "train")
    lines += [f"{n},{n + 1 + (n % 3 == 0)},{splits[n % 4]}" for n in range(120)]
    Path("sums.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def made_up() -> StudyResult:
    """A study with something of everything."""
    figures = (
        ObjectiveFigure("quality", "quality", 0.71, 0.09, 0.04, 0.14, "held-out", 300),
        ObjectiveFigure("latency", "p95_s", 2.9, -1.2, -1.5, -0.9, "held-out", 300),
        ObjectiveFigure("cost", "cost_usd", 0.004, -0.001, -0.002, 0.0, "held-out", 300),
    )
    before = (
        ObjectiveFigure("quality", "quality", 0.62, source="held-out", cases=300),
        ObjectiveFigure("latency", "p95_s", 4.1, source="held-out", cases=300),
        ObjectiveFigure("cost", "cost_usd", 0.005, source="held-out", cases=300),
    )
    edit = {"edit": "set_model", "node": "solve", "model": "big"}
    edits = (EditNote("solve.model", 'solve.model = "big"', "<b>harder</b> cases", (edit,), 0.08),)
    best = FrontMember("1", "d1", (edit,), figures, edits, "--- a\n+++ b\n-<script>\n+big")
    predicted = (
        ObjectiveFigure("quality", "quality", 0.66, 0.04, 0.0, 0.08, "predicted"),
        ObjectiveFigure("latency", "p95_s", 2.0, -2.1, -2.3, -1.9, "predicted"),
    )
    other = FrontMember("2", "d2", (), predicted)
    return StudyResult(
        "study-1",
        "brief",
        "quality",
        VerdictSummary("improved", "quality +0.09", 0.06, 2, 300, 0.01),
        FrontMember("baseline", "d0", (), before),
        (best, other),
        best,
        data={"name": "cases.jsonl"},
        splits={"train": 400, "dev": 300, "held_out": 300},
        spend={"search": Spend(900, 90_000, 0.5), "held-out": Spend(600, 60_000, 0.3)},
        calls_saved=1_234,
        won=(CaseChange("q1", 0.0, 1.0, node="solve"),),
        lost=(CaseChange("<i>q2</i>", 1.0, 0.0),),
        leaks=(Leak("answer.prompt", "q9", "held_out", "its answer"),),
        proposers=(ProposerNote("bootstrap", 3, 1, 40),),
        wall_s=75.0,
    )


def test_the_report_of_a_study(capsys: pytest.CaptureFixture[str]) -> None:
    from weft.cli.console import stdout

    print_study(stdout(), made_up())
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert_golden(Path(__file__).parents[1] / "golden/cli_optimise_report.txt", "\n".join(lines))


def test_texts_of_a_study_are_escaped_in_its_page() -> None:
    page = study_page(made_up())
    for hostile in ("<script>", "<b>harder", "<i>q2"):
        assert hostile not in page
    assert "&lt;script&gt;" in page
    assert page.count("<circle") == 5  # two plots, one member without a cost
    assert 'fill="none"' in page  # what is only predicted


def test_a_dry_run_says_what_would_be_tried_and_runs_nothing() -> None:
    Path("functions.py").write_text("def total(a: int, how: str) -> int:\n    raise 1\n")
    shown = typed("optimise", "sums.yaml", "--dry-run", "--budget", "70calls, 2usd")
    assert shown.exit_code == 0, shown.output
    assert "30 train, 30 dev, 60 held_out" in shown.stdout
    assert "70 model calls, 2.0 usd" in shown.stdout
    assert json.loads(typed("optimise", "sums.yaml", "--dry-run", "--json").stdout)["splits"]
    assert typed("runs").stdout.count("sums") == 0


def test_a_dry_run_shows_each_value_on_its_own_line_and_what_is_there_now() -> None:
    knobs = """\
optimise:
  knobs:
    answer:
      temperature: [0.7]
      schema_order: true
      prompt: ["Add one.\\n\\n{{ a }}", "One more than {{ a }} is"]
    route: {optional: "{{ a }}"}
"""
    node = """\
models: {small: local:smollm2-135m-instruct}
nodes:
  answer:
    model: small
    prompt: "{{ route }}"
    schema: {type: object, properties: {a: {type: integer}, b: {type: string}}}
"""
    text = FLOW.replace("nodes:\n", node)
    Path("sums.yaml").write_text(text + knobs, encoding="utf-8")
    shown = typed("optimise", "sums.yaml", "--dry-run")
    assert shown.exit_code == 0, shown.output
    lines = "\n".join(line.rstrip() for line in shown.stdout.splitlines())
    assert_golden(Path(__file__).parents[1] / "golden/cli_optimise_dry_run.txt", lines)


def test_too_few_cases_are_told_with_the_number_that_would_do() -> None:
    lines = Path("sums.csv").read_text(encoding="utf-8").splitlines()
    Path("sums.csv").write_text("\n".join(lines[:59]) + "\n", encoding="utf-8")
    told = "29 held-out cases decide nothing: at least 30 are needed, which about 130 cases"
    assert told in typed("optimise", "sums.yaml", "--dry-run").stdout
    Path("sums.yaml").write_text(FLOW + USELESS, encoding="utf-8")
    ended = typed("optimise", "sums.yaml")
    assert ended.exit_code == 0, ended.output
    assert told in ended.stderr
    Path("sums.csv").write_text("\n".join(lines[:9]) + "\n", encoding="utf-8")
    refused = typed("optimise", "sums.yaml")
    assert refused.exit_code == 2
    assert "about 130 cases" in refused.stderr


def test_a_study_is_run_shown_and_written_where_something_was_shown() -> None:
    knobs = 'optimise: {knobs: {route: {optional: "{{ a + (a % 3 == 0) }}"}}}\n'
    Path("sums.yaml").write_text(FLOW + knobs, encoding="utf-8")
    files = ("--out", "better.yaml", "--html", "page.html", "--run-id", "one")
    ended = typed("optimise", "sums.yaml", "--budget", "900calls", *files)
    assert ended.exit_code == 0, ended.output
    assert ended.stdout.startswith("improved: quality 0."), ended.stdout
    assert "route.optional" in ended.stdout
    better = Path("better.yaml").read_text(encoding="utf-8")
    assert better.startswith("# kept\n")
    assert "a % 3" in better
    assert "improved" in Path("page.html").read_text(encoding="utf-8")
    shown = typed("optimise", "show", "one", "--json", "--pick", "1", "--out", "again.yaml")
    assert shown.exit_code == 0, shown.output
    assert json.loads(shown.stdout)["verdict"]["kind"] == "improved"
    assert Path("again.yaml").read_text(encoding="utf-8") == better
    more = typed("optimise", "one", "--more", "50calls", "--out", "more.yaml")
    assert more.exit_code == 0, more.output
    assert more.stdout.startswith("improved: quality 0."), more.stdout
    assert "look 2 at these cases" in more.stdout
    assert Path("more.yaml").read_text(encoding="utf-8") == better


def test_nothing_is_written_where_nothing_was_shown() -> None:
    Path("sums.yaml").write_text(FLOW + USELESS, encoding="utf-8")
    ended = typed("optimise", "sums.yaml", "--out", "better.yaml")
    assert ended.exit_code == 0, ended.output
    assert ended.stdout.startswith(("no_headroom", "not_shown"))
    assert "better.yaml was not written" in ended.stderr
    assert not Path("better.yaml").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("optimise",), "Missing argument"),
        (("optimise", "a", "b", "c"), "expected FILE, or show RUN"),
        (("optimise", "sums.yaml", "--keep", "quality"), "p95_s=4"),
        (("optimise", "sums.yaml", "--keep", "speed=1"), "speed"),
        (("optimise", "sums.yaml", "--for", "fame"), "fame"),
        (("optimise", "sums.yaml", "--budget", "much"), "2usd"),
        (("optimise", "sums.yaml", "--proposers", "gep"), "gep"),
        (("optimise", "sums.yaml", "--shares", "1/2"), "40/30/30"),
        (("optimise", "sums.yaml", "--pick", "1"), "--out"),
        (("optimise", "sums.yaml", "--out", "away/b.yaml"), "away"),
        (("optimise", "show", "nobody"), "nobody"),
        (("optimise", "nobody", "--more", "5"), "nobody"),
        (("optimise", "nobody", "--more", "5", "--budget", "9"), "give --more alone"),
    ],
)
def test_wrong_usage_ends_with_2(words: tuple[str, ...], said: str) -> None:
    ended = typed(*words)
    assert ended.exit_code == 2, ended.output
    assert said in clean(ended.output)
