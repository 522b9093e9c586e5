"""`weft eval`: runs, shows and compares evaluations, and decides for CI."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.cli.command_line import go_into, typed
from tests.evaluation.flows import sums_folder

GIVEN = ("sums.yaml", "--data", "sums.csv", "--metric", "exact")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go_into(sums_folder(tmp_path), monkeypatch)


def test_it_prints_scores_intervals_failures_and_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_TEST_BROKEN", "1")
    monkeypatch.setenv("WEFT_TEST_WRONG", "2")
    ended = typed("eval", *GIVEN, "--run-id", "one")
    assert ended.exit_code == 0, ended.output
    assert "sums  sums.csv, 6 cases x 1 replicate, run one" in ended.stdout
    assert "0.6667" in ended.stdout
    assert "5 scored, 1 failed" in ended.stdout
    assert "total: ToolRaised: add raised ValueError: three" in ended.stdout


def test_failures_for_one_reason_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    sums_folder(Path.cwd(), 9)
    monkeypatch.setenv("WEFT_TEST_BROKEN", "2")
    ended = typed("eval", *GIVEN, "--replicates", "2")
    lines = [line for line in ended.stdout.splitlines() if line.startswith("failed")]
    assert len(lines) == 1, ended.output
    assert "[0] and 1 more  total: ToolRaised" in lines[0]


def test_a_fall_below_the_baseline_ends_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    sums_folder(Path.cwd(), 9)
    first = typed("eval", *GIVEN, "--baseline", "last", "--fail-if-worse")
    assert first.exit_code == 0, first.output
    assert "this one is the next baseline" in first.stdout
    same = typed("eval", *GIVEN, "--baseline", "last", "--fail-if-worse", "--run-id", "same")
    assert same.exit_code == 0
    monkeypatch.setenv("WEFT_TEST_WRONG", "1 2 3 4 5 6 7")
    files = ("--junit", "a.xml", "--html", "a.html")
    worse = typed("eval", *GIVEN, "--baseline", "same", "--fail-if-worse", *files)
    assert worse.exit_code == 1
    assert "fails: exact is worse than in same: 1 -> 0.2222" in worse.stdout
    assert "lost 7" in worse.stdout
    suite = ET.parse("a.xml").getroot()
    assert suite.attrib["failures"] == "8"
    assert "Against same" in Path("a.html").read_text(encoding="utf-8")
    compared = typed("eval", "diff", "same", "last", "--json")
    assert compared.exit_code == 0
    (exact,) = json.loads(compared.stdout)["metrics"].values()
    assert exact["verdict"] == "worse"
    assert typed("eval", "diff", "same", "last", "--fail-if-worse").exit_code == 1


def test_an_evaluation_that_is_not_recorded_has_no_run() -> None:
    ended = typed("eval", *GIVEN, "--durability", "none", "--limit", "2")
    assert ended.exit_code == 0, ended.output
    assert "not recorded" in ended.stdout
    assert "run sums" not in ended.stdout


def test_json_is_one_document_and_a_baseline_for_later(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = typed("eval", *GIVEN, "--fail-below", "0.9", "--json", "--replicates", "2")
    assert ended.exit_code == 0, ended.output
    data = json.loads(ended.stdout)
    assert data["metrics"]["exact"]["mean"] == 1.0
    assert len(data["cases"]) == 12
    Path("base.json").write_text(ended.stdout, encoding="utf-8")
    again = typed("eval", *GIVEN, "--baseline", "base.json", "--limit", "3")
    assert "their data differ: compared on 3 common cases" in again.stdout


def test_a_recorded_evaluation_is_shown_and_rescored_without_running_it() -> None:
    typed("eval", *GIVEN, "--run-id", "kept")
    calls = Path("calls.txt").read_text(encoding="utf-8")
    shown = typed("eval", "show", "kept", "--rescore", "half=./functions.py:halved")
    assert shown.exit_code == 0, shown.output
    assert "half    1.0000" in shown.stdout
    assert Path("calls.txt").read_text(encoding="utf-8") == calls
    refused = typed("eval", "show", "kept", "--rescore", "judge:vllm:big")
    assert refused.exit_code == 2
    assert "asks a model" in refused.stderr


def test_the_workflow_may_say_it_all_and_files_are_found_from_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "evaluation: {data: sums.csv, metrics: {half: './functions.py:halved'}, limit: 2}\n"
    with Path("sums.yaml").open("a", encoding="utf-8") as file:
        file.write(said)
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    ended = typed("eval", str(tmp_path / "sums.yaml"))
    assert ended.exit_code == 0, ended.output
    assert "half    1.0000" in ended.stdout
    assert typed("check", str(tmp_path / "sums.yaml")).exit_code == 0


def test_an_interrupted_evaluation_is_resumed_by_its_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_TEST_BROKEN", "1")
    capped = typed("eval", *GIVEN, "--max-errors", "0", "--slots", "1", "--run-id", "capped")
    assert capped.exit_code == 1
    assert "go on: weft resume capped" in capped.stdout
    monkeypatch.delenv("WEFT_TEST_BROKEN")
    resumed = typed("resume", "capped")
    assert resumed.exit_code == 0, resumed.output
    assert "6 scored" in resumed.stdout
    assert sorted(Path("calls.txt").read_text(encoding="utf-8").split()) == list("123456")


def test_a_run_that_failed_its_gates_or_took_other_cases_is_no_last_baseline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sums_folder(Path.cwd(), 9)
    gated = (*GIVEN, "--baseline", "last", "--fail-if-worse")
    assert typed("eval", *gated, "--run-id", "good").exit_code == 0
    monkeypatch.setenv("WEFT_TEST_WRONG", "1 2 3 4 5 6 7")
    for name in ("bad", "worse"):
        assert typed("eval", *gated, "--run-id", name).exit_code == 1
    monkeypatch.delenv("WEFT_TEST_WRONG")
    other = typed("eval", *gated, "--limit", "3", "--run-id", "short")
    assert "this one is the next baseline" in other.stdout
    typed("eval", "sums.yaml", "--data", "sums.csv", "--metric", "f1", "--metric", "exact")
    again = typed("eval", *gated)
    assert again.exit_code == 0
    assert "baseline: good" in again.stdout


def test_a_baseline_without_the_main_metric_is_an_error() -> None:
    typed("eval", *GIVEN, "--run-id", "exact")
    both = ("sums.yaml", "--data", "sums.csv", "--metric", "f1", "--metric", "exact")
    ended = typed("eval", *both, "--baseline", "exact", "--fail-if-worse")
    assert ended.exit_code != 0
    assert "the baseline exact has no metric `f1`" in ended.stderr


def test_unscored_results_fail_a_gate() -> None:
    broken = ("sums.yaml", "--data", "sums.csv", "--metric", "./functions.py:broken")
    assert typed("eval", *broken).exit_code == 0
    gated = typed("eval", *broken, "--max-unscored", "5")
    assert gated.exit_code == 1
    assert "6 results have no score of broken, the first: " in gated.stdout
    assert "no such scale" in gated.stdout
    assert typed("eval", *broken, "--max-unscored", "6").exit_code == 0


def test_the_gates_hold_for_a_resumed_evaluation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_TEST_BROKEN", "1")
    monkeypatch.setenv("WEFT_TEST_WRONG", "4 5")
    capped = ("--max-errors", "0", "--slots", "1", "--run-id", "capped")
    assert typed("eval", *GIVEN, *capped, "--fail-below", "0.9").exit_code == 1
    monkeypatch.delenv("WEFT_TEST_BROKEN")
    resumed = typed("resume", "capped")
    assert resumed.exit_code == 1, resumed.output
    assert "fails: exact is 0.6667, below 0.9" in resumed.stdout


def test_metrics_of_one_kind_get_names_of_their_own_and_their_failures_are_told() -> None:
    metrics = ("numeric:0.5", "numeric:0.1", "./functions.py:broken")
    given = [each for metric in metrics for each in ("--metric", metric)]
    ended = typed("eval", "sums.yaml", "--data", "sums.csv", *given, "--run-id", "three")
    assert ended.exit_code == 0, ended.output
    lines = ended.stdout.splitlines()
    assert [line.split()[0] for line in lines[2:5]] == ["numeric", "numeric_2", "broken"]
    assert "unscored broken of 6, the first  ToolRaised: broken raised" in ended.stdout
    rescored = typed("eval", "diff", "three", "three", "--rescore", "numeric:0.5")
    assert rescored.exit_code == 0
    assert "numeric" in rescored.stdout
    assert "broken" not in rescored.stdout


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("{data: {file: sums.csv, grup: a}}", "did you mean `group`?"),
        ("{replicatess: 2}", "did you mean `replicates`?"),
        ("{metrics: {x: {use: numeric, tolerence: 1}}}", "did you mean `tolerance`?"),
        ("{metrics: {x: ./none.py:f}}", "none.py"),
        ("{metrics: {x: ./functions.py:none}}", "none"),
        ("{data: none.csv}", "there is no file"),
    ],
)
def test_check_finds_what_an_evaluation_lacks(said: str, found: str) -> None:
    with Path("sums.yaml").open("a", encoding="utf-8") as file:
        file.write(f"evaluation: {said}\n")
    ended = typed("check", "sums.yaml")
    assert ended.exit_code == 2
    assert found in ended.stderr
    assert "sums.yaml:5:" in ended.stderr


def test_a_missing_column_names_the_file() -> None:
    with Path("sums.yaml").open("a", encoding="utf-8") as file:
        file.write("evaluation: {data: {file: sums.csv, group: topic}, metrics: {x: exact}}\n")
    assert "sums.csv, row 1: cannot compute" in typed("eval", "sums.yaml").stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("sums.yaml",), "there is no metric"),
        (("sums.yaml", "--metric", "exact"), "has no data"),
        (("nothing.yaml",), "nothing.yaml"),
        (("show", "none"), "none"),
        (("a", "b"), "expected FILE, show RUN, or diff A B"),
        ((*GIVEN, "--shares", "1/2"), "expected 40/30/30"),
        ((*GIVEN, "--budget", "2eur"), "expected"),
        ((*GIVEN, "--fail-if-worse"), "there is no baseline"),
        ((*GIVEN, "--baseline", "none"), "none"),
        ((*GIVEN, "--metric", "exact"), "two metrics `exact`"),
        ((*GIVEN, "--rescore", "f1"), "goes with a recorded run"),
        ((*GIVEN, "--filter", "case.a == 1"), "{{ case.a == 1 }}"),
        ((*GIVEN, "--filter", "{{ case.a }} == 1"), "put all of it into one"),
        (("show", "last", "--metric", "f1"), "--rescore METRIC"),
        (("diff", "a", "b", "--metric", "f1"), "--rescore METRIC"),
    ],
)
def test_wrong_usage_ends_with_2_and_runs_nothing(words: tuple[str, ...], said: str) -> None:
    ended = typed("eval", *words)
    assert ended.exit_code == 2
    assert said in ended.output
    assert not Path("calls.txt").exists()
