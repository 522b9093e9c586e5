"""An evaluation as JSON data, and as a JUnit report for CI."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args
from xml.etree import ElementTree as ET

from weft.core.errors import InputError
from weft.core.redaction import hidden
from weft.core.values import Usage
from weft.evaluation.compare import EvaluationComparison, MetricComparison
from weft.evaluation.metric import Score
from weft.evaluation.result import CaseResult, CaseStatus, EvaluationResult
from weft.evaluation.statistics import Interval

PASSED = 0.5
"""The least score of a case that counts as passed in a JUnit report."""


def evaluation_data(result: EvaluationResult, *, outputs: bool = True) -> dict[str, Any]:
    """The evaluation as plain data; numbers that do not exist are null.

    Without `outputs` it is what a baseline needs: see `read_evaluation_file`.
    """
    usage = result.case_usage
    summaries = {name: result.summary(name) for name in result.metrics}
    found = {
        "run": result.run,
        "flow": result.flow,
        "data": dict(result.data),
        "replicates": result.replicates,
        "finished": result.finished,
        "results": result.counts(),
        "main": result.main,
        "metrics": {
            name: {
                **interval_data(each.interval),
                "cases": each.cases,
                "unscored": each.unscored,
            }
            for name, each in summaries.items()
        },
        "wall_s": {
            "run": result.wall_s,
            "p50": _number(result.wall(0.5)),
            "p95": _number(result.wall(0.95)),
        },
        "usage": {
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "cost_usd": usage.money,
            "with_metrics_tokens": result.usage.tokens,
            "with_metrics_cost_usd": result.usage.money,
        },
    }
    found["cases"] = [_case_data(case, outputs) for case in result.cases]
    data: dict[str, Any] = hidden(found)
    return data


def _case_data(case: CaseResult, outputs: bool) -> dict[str, Any]:
    scores = {
        name: {"value": score.value, "feedback": score.feedback, "parts": dict(score.parts)}
        for name, score in case.scores.items()
    }
    return {
        "id": case.case,
        "replicate": case.replicate,
        "group": case.group,
        "status": case.status,
        "scores": scores,
        "unscored": dict(case.unscored),
        "reason": case.reason,
        **({"outputs": case.outputs} if outputs else {}),
        "wall_s": case.wall_s,
        "tokens": case.usage.tokens,
        "cost_usd": case.usage.money,
    }


def read_evaluation_file(path: Path) -> EvaluationResult:
    """The evaluation in a JSON file of `weft eval --json`. Raises: `InputError`."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        usage = data["usage"]
        return EvaluationResult(
            str(data["run"]),
            str(data["flow"]),
            dict(data["data"]),
            tuple(map(str, data["metrics"])),
            str(data["main"]),
            int(data["replicates"]),
            tuple(map(_case_from, data["cases"])),
            Usage(
                int(usage["with_metrics_tokens"]),
                money=float(usage["with_metrics_cost_usd"]),
            ),
            float(data["wall_s"]["run"]),
            bool(data["finished"]),
        )
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        hint = "weft eval show RUN --json writes one"
        raise InputError(f"{path} is no evaluation: {error!r:.80}", hint=hint) from error


def _case_from(data: Mapping[str, Any]) -> CaseResult:
    if data["status"] not in get_args(CaseStatus):
        raise ValueError(data["status"])
    scores = {
        str(name): Score(float(each["value"]), str(each["feedback"]), dict(each["parts"]))
        for name, each in data["scores"].items()
    }
    return CaseResult(
        str(data["id"]),
        int(data["replicate"]),
        data["status"],
        str(data["group"]),
        scores,
        dict(data["unscored"]),
        str(data["reason"]),
        data.get("outputs"),
        float(data["wall_s"]),
        Usage(int(data["tokens"]), money=float(data["cost_usd"])),
    )


def comparison_data(found: EvaluationComparison) -> dict[str, Any]:
    """The comparison as plain data."""
    return {
        "a": found.a,
        "b": found.b,
        "metrics": {each.metric: _metric_data(each) for each in found.metrics},
        "p50_s": None if found.p50_s is None else interval_data(found.p50_s),
        "p95_s": None if found.p95_s is None else interval_data(found.p95_s),
        "tokens": interval_data(found.tokens),
        "cost_usd": interval_data(found.cost_usd),
        "notes": list(found.notes),
    }


def _metric_data(each: MetricComparison) -> dict[str, Any]:
    return {
        "cases": each.cases,
        "a": each.a,
        "b": each.b,
        "difference": interval_data(each.difference),
        "p": each.p,
        "test": each.test,
        "verdict": each.verdict,
        "lost": dict(each.lost),
        "won": dict(each.won),
    }


def interval_data(interval: Interval) -> dict[str, float | None]:
    """Mean and bounds; null where there is no value."""
    return {name: _number(getattr(interval, name)) for name in ("mean", "low", "high")}


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def junit(result: EvaluationResult, failures: tuple[str, ...] = ()) -> str:
    """A JUnit report: a test for each case, and one, `gate`, for what the whole has to fulfil.

    A case fails below a score of 0.5, is an error where its workflow failed, and skipped where it
    is unscored or unfinished.
    """
    suite = ET.Element("testsuite", name=f"{result.flow} ({result.main})")
    told: dict[str, int] = {"failure": 0, "error": 0, "skipped": 0}
    for case in result.cases:
        name = case.case if result.replicates == 1 else f"{case.case} [{case.replicate}]"
        test = _test(suite, result.flow, name, case.wall_s)
        said = _verdict(case, result.main)
        if said is not None:
            told[said[0]] += 1
            ET.SubElement(test, said[0], message=_xml(said[1]))
    gate = _test(suite, result.flow, "gate", result.wall_s)
    if failures:
        told["failure"] += 1
        ET.SubElement(gate, "failure", message=_xml("; ".join(failures)))
    counts: Mapping[str, int] = {
        "tests": len(result.cases) + 1,
        "failures": told["failure"],
        "errors": told["error"],
        "skipped": told["skipped"],
    }
    for key, count in counts.items():
        suite.set(key, str(count))
    ET.indent(suite)
    return ET.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _test(suite: ET.Element, flow: str, name: str, wall_s: float) -> ET.Element:
    attributes = {"classname": flow, "name": _xml(name), "time": f"{wall_s:.3f}"}
    return ET.SubElement(suite, "testcase", attributes)


def _verdict(case: CaseResult, main: str) -> tuple[str, str] | None:
    if case.status == "failed":
        return "error", case.reason
    score = case.scores.get(main)
    if score is None:
        return "skipped", case.reason or case.unscored.get(main, case.status)
    if score.value < PASSED:
        return "failure", score.feedback or f"{main} is {score.value:g}"
    return None


def _xml(text: object) -> str:
    """The text without characters that XML has no place for, and without secrets."""
    shown = str(hidden(text))[:2000]
    return (
        "".join(
            each if each in "\t\n" or (each >= " " and not "\ud800" <= each <= "\udfff") else "?"
            for each in shown
        )
        .replace("\ufffe", "?")
        .replace("\uffff", "?")
    )
