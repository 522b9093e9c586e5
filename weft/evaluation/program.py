"""An evaluation as a workflow: one map over cases x replicates around the workflow under test.

    cases[17]/run               the workflow under test, seeded by its case and replicate
    cases[17]/score_correct     a metric of its outputs; its own failure is no failure of the case

So slots, budgets, resumption, cancellation and isolation are those of any run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from weft.core.errors import BuildError
from weft.evaluation.case import Case, seed_of_case
from weft.evaluation.dataset import Dataset
from weft.evaluation.judge import ANSWERS
from weft.evaluation.metrics import CHECK, JUDGE, MODULE, Metric
from weft.evaluation.notes import NOTES, SUFFIX
from weft.workflow.document import WorkflowDocument
from weft.workflow.document.references import check_references
from weft.workflow.document.spec.defects import first_defect
from weft.workflow.document.spec.settings import RunSpec
from weft.workflow.document.unit import ONLY_PYTHON, Unit
from weft.workflow.flow.python_values import literal
from weft.workflow.history.recorded_workflow import question_notes

CASES: Final = "cases"
"""The map."""
ITEMS: Final = "items"
"""The input with the items of the map."""
RUN: Final = "run"
"""The workflow under test, inside an item."""
WIDTH: Final = 64
"""At most so many cases at once, unless said otherwise."""
_ITEM: Final = re.compile(rf"{CASES}\[(\d+)\](?:/([^/~]+)(?:~\d+)?(?:/(.*))?)?")
_MOST_NODES: Final = 50_000_000


def item_of(node: str) -> tuple[int, str, str] | None:
    """The number of the item that a node is in, the node in the item, and the place inside that.

    None for a node of no item.
    """
    match = _ITEM.fullmatch(node)
    return None if match is None else (int(match[1]), match[2] or "", match[3] or "")


@dataclass(frozen=True, slots=True)
class Environment:
    """The nodes of the workflow under test that are no part of its answer, by their names."""

    prepare: str | None = None
    check: str | None = None
    tear_down: str | None = None

    def check_names(self, document: WorkflowDocument) -> None:
        """Raises: `BuildError` for a node that the workflow does not have."""
        for key in ("prepare", "check", "tear_down"):
            name = getattr(self, key)
            if name is not None and name not in document.nodes:
                hint = f"its nodes are {', '.join(document.nodes)}"
                raise BuildError(f"`{key}`: there is no node `{name}`", hint=hint)

    @property
    def around(self) -> tuple[str, ...]:
        """The nodes whose failure is one of the environment."""
        return tuple(name for name in (self.prepare, self.tear_down) if name is not None)


@dataclass(frozen=True, slots=True)
class EvaluationProgram:
    """What is evaluated, on what, by what.

    `chosen`: which cases of the data set were taken; `gates`: what the result must reach.
    """

    unit: Unit
    data: Dataset
    metrics: tuple[Metric, ...]
    environment: Environment
    replicates: int = 1
    width: int = WIDTH
    max_errors: int | None = None
    chosen: Mapping[str, Any] = field(default_factory=dict)
    gates: Mapping[str, Any] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the metrics, the main one first."""
        names = tuple(metric.name for metric in self.metrics)
        return names if self.environment.check is None else (*names, CHECK)

    def items(self) -> list[dict[str, Any]]:
        """The items of the map, the replicates of a case beside each other."""
        return [
            {"case": data, "replicate": number, "seed": seed_of_case(case.id, number)}
            for case, data in ((case, case.data) for case in self.data)
            for number in range(self.replicates)
        ]

    @property
    def about_data(self) -> dict[str, Any]:
        """The data set as the record names it: evaluations of equal ones can be compared."""
        size = {"name": self.data.name, "digest": self.data.digest, "cases": len(self.data)}
        return {**size, **self.chosen}

    def notes(self) -> dict[str, Any]:
        """What the record of the run says of the evaluation.

        The program is read from the record when the run is resumed.
        """
        about = {
            "flow": self.unit.document.name,
            "data": self.about_data,
            "replicates": self.replicates,
            "metrics": {metric.name: metric.recorded for metric in self.metrics},
            "prepare": self.environment.prepare,
            "check": self.environment.check,
            "tear_down": self.environment.tear_down,
            "slots": self.width,
            "max_errors": self.max_errors,
            "gates": dict(self.gates) or None,
        }
        notes = {} if self.in_python else question_notes(self.unit.folder)
        return {**notes, NOTES: {key: each for key, each in about.items() if each is not None}}

    @property
    def in_python(self) -> bool:
        """Whether a part of it exists only in this process, so that it is resumed there."""
        units = self.unit.everything()
        return any(metric.spec.use.startswith(ONLY_PYTHON) for metric in self.metrics) or any(
            unit.origin is None or unit.functions or unit.clients for unit in units
        )

    def composed(self) -> Unit:
        """The workflow that evaluates. Raises: `BuildError`."""
        tested = self.unit.document
        path = self._path()
        raw = {
            "name": f"{tested.name}{SUFFIX}",
            "inputs": {ITEMS: {"type": "array", "items": {"type": "object"}}},
            "models": {**_models(tested), **self._judges()},
            "run": _limits(tested.run),
            "nodes": {
                CASES: {
                    "map": f"{{{{ {ITEMS} }}}}",
                    "as": "item",
                    "width": self.width,
                    "mode": "best_effort",
                    "do": {"nodes": self._nodes(path), "result": self._result()},
                }
            },
            "outputs": {"scores": f"{{{{ {CASES} }}}}"},
        }
        raw = {key: value for key, value in raw.items() if value}
        functions = {
            metric.spec.use: metric.function
            for metric in self.metrics
            if metric.function is not None and metric.spec.use.startswith(ONLY_PYTHON)
        }
        try:
            document = WorkflowDocument.model_validate(raw)
        except ValidationError as error:  # of a judge: all else has been checked
            defect = first_defect(error, raw)
            raise BuildError(f"the evaluation: {defect.message}", hint=defect.hint) from error
        unit = Unit(
            document,
            self.unit.folder,
            self.unit.root,
            None,
            {path: self.unit},
            functions,
            dict(self.unit.clients),
        )
        check_references(unit)
        return unit

    def _path(self) -> str:
        origin = self.unit.origin
        file = None if origin is None else Path(origin.source.file).resolve()
        if file is None or not file.is_relative_to(self.unit.folder):
            return f"{ONLY_PYTHON}{self.unit.document.name}"
        return f"./{file.relative_to(self.unit.folder).as_posix()}"

    def _nodes(self, path: str) -> dict[str, Any]:
        spec = self.unit.document.run
        inputs = {name: f"{{{{ item.case.inputs['{name}'] }}}}" for name in _inputs(self.data)}
        run: dict[str, Any] = {"workflow": path, "with": inputs, "seed": "{{ item.seed }}"}
        if spec.deadline is not None:
            run["timeout"] = spec.deadline
        if spec.budget is not None:
            run["budget"] = spec.budget.model_dump(exclude_unset=True)
        nodes = {RUN: run}
        for metric in self.metrics:
            if not metric.after_run:
                nodes.update(_score_nodes(metric))
        return nodes

    def _result(self) -> Any:
        scored = [metric for metric in self.metrics if not metric.after_run]
        if not scored:
            return {"ran": f"{{{{ {RUN} is defined }}}}"}
        if len(scored) == 1:
            return f"{{{{ {score_node(scored[0].name)} }}}}"  # one node less than a mapping
        return {metric.name: f"{{{{ {score_node(metric.name)} }}}}" for metric in scored}

    def _judges(self) -> dict[str, Any]:
        return {
            judge_name(metric): metric.spec.model
            for metric in self.metrics
            if metric.spec.use == JUDGE and metric.spec.model not in self.unit.document.models
        }


def score_node(metric: str) -> str:
    """The node of a metric inside an item."""
    return f"score_{metric}"


def judge_name(metric: Metric) -> str:
    """The model of a judge: one of the workflow's, or one of its own."""
    model = metric.spec.model or ""
    return model if model.isidentifier() else f"judge_of_{metric.name}"


def _score_nodes(metric: Metric) -> Iterator[tuple[str, dict[str, Any]]]:
    own = score_node(metric.name)
    if metric.spec.use == JUDGE:
        yield from _judge_nodes(metric, own)
        return
    given: dict[str, Any] = {
        metric.parameters[0]: "{{ item.case }}",
        metric.parameters[1]: f"{{{{ {RUN} }}}}",
    }
    if metric.is_built_in:
        given["options"] = _literal(metric.options)
    call = f"{MODULE}:{metric.spec.use}" if metric.is_built_in else metric.spec.use
    yield own, {"call": call, "with": given, "default": None}


def _judge_nodes(metric: Metric, own: str) -> Iterator[tuple[str, dict[str, Any]]]:
    module = "weft.evaluation.judge"
    for order in ("forth", "back"):
        options = {**metric.options, "swapped": order == "back"}
        given = {"case": "{{ item.case }}", "outputs": f"{{{{ {RUN} }}}}"}
        asked = f"{own}_{order}_messages"
        yield (
            asked,
            {
                "call": f"{module}:messages",
                "with": {**given, "options": _literal(options)},
                "default": None,
            },
        )
        yield (
            f"{own}_{order}",
            {
                "model": judge_name(metric),
                "messages": f"{{{{ {asked} }}}}",
                "schema": dict(ANSWERS),
                "temperature": 0.0,
                "default": None,
            },
        )
    answers = {order: f"{{{{ {own}_{order} }}}}" for order in ("forth", "back")}
    yield own, {"call": f"{module}:verdict", "with": answers, "default": None}


def _literal(value: Any) -> Any:
    """Plain data of a metric, whose braces are no expressions."""
    if isinstance(value, str):
        return literal(value) if "{" in value else value
    if isinstance(value, Mapping):
        return {key: _literal(part) for key, part in value.items()}
    return [_literal(part) for part in value] if isinstance(value, list) else value


def _inputs(cases: Sequence[Case]) -> tuple[str, ...]:
    """The names of the inputs, which all fitted cases have alike."""
    return tuple(cases[0].inputs) if cases else ()


def _models(document: WorkflowDocument) -> dict[str, Any]:
    """The workflow's models, so that settings of the run may name them."""
    return {
        name: model.model_dump(by_alias=True, exclude_unset=True)
        for name, model in document.models.items()
    }


def _limits(spec: RunSpec) -> dict[str, Any]:
    """The limits of the workflow that hold for all cases together; others are a case's own."""
    given = spec.model_dump(by_alias=True, exclude_unset=True)
    own = ("deadline", "budget", "max_nodes", "seed", "durability")
    kept = {key: value for key, value in given.items() if key not in own}
    return {**kept, "max_nodes": _MOST_NODES}


def environment_of(unit: Unit, **given: str | None) -> Environment:
    """The nodes `given`, else those of the workflow's `evaluation`. Raises: `BuildError`."""
    spec = unit.document.evaluation
    found = {
        name: value or (None if spec is None else getattr(spec, name))
        for name, value in given.items()
    }
    made = Environment(**found)
    made.check_names(unit.document)
    return made


def main_metric(metrics: Sequence[Metric], environment: Environment) -> str:
    """The name of the main metric. Raises: `BuildError` where nothing is measured."""
    if metrics:
        return metrics[0].name
    if environment.check is not None:
        return CHECK
    hint = "--metric exact, or `metrics` under `evaluation` of the workflow"
    raise BuildError("there is no metric", hint=hint)
