"""Comparisons, gates, reports: on results made by hand, whose figures are known."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft import EvaluationResult, Score
from weft.cli.evaluation.page import evaluation_page
from weft.cli.evaluation.report import histogram
from weft.core.values import Usage
from weft.errors import InputError
from weft.evaluation.compare import compare_evaluations
from weft.evaluation.export import evaluation_data, junit, read_evaluation_file
from weft.evaluation.gate import EvaluationGate
from weft.evaluation.result import CaseResult


def case(name: str, value: float | None, **more: object) -> CaseResult:
    scores = {} if value is None else {"right": Score(value, "<said>")}
    status = "unscored" if value is None else "scored"
    given = {"wall_s": 1.0, "usage": Usage(10, money=0.5), "reason": "", **more}
    return CaseResult(name, 0, status, name, scores, **given)  # type: ignore[arg-type]


def result(run: str, values: dict[str, float | None], digest: str = "d") -> EvaluationResult:
    cases = tuple(case(name, value) for name, value in values.items())
    data = {"name": "data", "digest": digest, "cases": len(cases)}
    return EvaluationResult(run, "flow", data, ("right",), "right", 1, cases)


def test_the_exact_test_of_pairs_decides_between_right_and_wrong() -> None:
    before = result("a", {f"{n}": float(n < 8) for n in range(20)})
    after = result("b", {f"{n}": float(n < 16) for n in range(20)})
    found = compare_evaluations(before, after).main
    assert found.test == "exact McNemar"
    assert found.p == pytest.approx(2 / 2**8)
    assert (found.verdict, len(found.won), len(found.lost)) == ("better", 8, 0)
    back = compare_evaluations(after, before)
    assert back.main.verdict == "worse"
    failures = EvaluationGate(fail_if_worse=True).failures(before, back)
    assert "worse than in b" in failures[0]
    assert not EvaluationGate(fail_if_worse=True, margin=0.5).failures(before, back)
    assert EvaluationGate(fail_below=0.5).failures(before, None)
    assert not EvaluationGate(fail_below=0.4).failures(before, None)


def test_few_changes_show_nothing_and_unscored_cases_take_no_part() -> None:
    before = result("a", {"1": 1.0, "2": 0.0, "3": None})
    after = result("b", {"1": 0.0, "2": 0.0, "3": 1.0}, digest="other")
    found = compare_evaluations(before, after)
    assert found.main.cases == 2
    assert found.main.verdict == "not shown"
    assert dict(found.main.lost) == {"1": -1.0}
    assert "2 common cases" in found.notes[0]
    with pytest.raises(InputError, match="no case has a score"):
        compare_evaluations(result("a", {"1": 1.0}), result("b", {"2": 1.0}))


def test_graded_scores_are_tested_by_their_signs() -> None:
    before = result("a", {f"{n}": 0.3 for n in range(12)})
    after = result("b", {f"{n}": 0.4 for n in range(12)})
    found = compare_evaluations(before, after).main
    assert found.test == "sign flips"
    assert found.p < 0.01
    assert found.difference.mean == pytest.approx(0.1)


def test_cases_of_a_group_are_one_observation() -> None:
    def of(run: str, value: float, groups: int) -> EvaluationResult:
        made = tuple(replace(case(f"{n}", value), group=f"g{n % groups}") for n in range(30))
        data = {"name": "data", "digest": "d", "cases": 30}
        return EvaluationResult(run, "flow", data, ("right",), "right", 1, made)

    few = compare_evaluations(of("a", 0.0, 3), of("b", 1.0, 3))
    assert few.main.test == "sign flips of 3 groups"
    assert few.main.p == pytest.approx(2 / 2**3)
    assert few.notes == ("3 groups of cases: too few groups to show anything",)
    many = compare_evaluations(of("a", 0.0, 15), of("b", 1.0, 15))
    assert many.main.p == pytest.approx(2 / 2**15)
    assert not many.notes
    assert compare_evaluations(of("a", 0.0, 30), of("b", 1.0, 30)).main.test == "exact McNemar"


def test_a_faster_candidate_has_a_negative_difference() -> None:
    names = [f"{n}" for n in range(10)]
    slow, fast = (
        EvaluationResult(
            run,
            "flow",
            {"name": "data", "digest": "d", "cases": 10},
            ("right",),
            "right",
            1,
            tuple(case(name, 1.0, wall_s=wall_s) for name in names),
        )
        for run, wall_s in (("a", 4.0), ("b", 1.0))
    )
    found = compare_evaluations(slow, fast)
    assert found.p50_s is not None
    assert (found.p50_s.mean, found.p50_s.high) == (-3.0, -3.0)


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0, None]), min_size=1, max_size=12))
def test_a_result_is_read_back_from_its_file(values: list[float | None]) -> None:
    made = result("a", {f"{n}": value for n, value in enumerate(values)})
    text = json.dumps(evaluation_data(made, outputs=False), allow_nan=False)
    read = read_evaluation_file(_Text(text))  # type: ignore[arg-type]
    assert read.means() == made.means()
    assert read.counts() == made.counts()
    assert read.walls == made.walls
    assert math.isnan(read.score) == (not made.means())


class _Text:
    """A file in memory."""

    def __init__(self, text: str) -> None:
        self._text = text

    def read_text(self, encoding: str) -> str:
        return self._text


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"run": 1, "cases": [{}]}'])
def test_a_file_that_is_no_evaluation_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="is no evaluation"):
        read_evaluation_file(tmp_path / "a.json")


def test_a_junit_report_has_a_test_for_each_case_and_one_for_the_gate() -> None:
    made = result("a", {"good": 1.0, "<bad>\x00": 0.0, "none": None})
    suite = ET.fromstring(junit(made, ("below 0.9",)))
    assert suite.attrib["tests"] == "4"
    assert suite.attrib["failures"] == "2"
    assert suite.attrib["skipped"] == "1"
    kinds = {test.attrib["name"]: [child.tag for child in test] for test in suite}
    assert kinds == {"good": [], "<bad>?": ["failure"], "none": ["skipped"], "gate": ["failure"]}


def test_the_page_shows_what_models_wrote_as_text() -> None:
    hostile = case("<script>1</script>", 0.0, outputs={"answer": "</td><script>alert(1)</script>"})
    made = EvaluationResult("a", "f", {"cases": 1}, ("right",), "right", 1, (hostile,))
    better = EvaluationResult("b", "f", {"cases": 1}, ("right",), "right", 1, (hostile,))
    page = evaluation_page(made, compare_evaluations(better, made), better)
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "default-src &#x27;none&#x27;" in page or "default-src 'none'" in page


@given(st.lists(st.floats(-1e6, 1e6), max_size=50))
def test_a_histogram_has_a_bar_for_each_step(values: list[float]) -> None:
    assert len(histogram(values)) == (0 if not values else 1 if min(values) == max(values) else 20)
