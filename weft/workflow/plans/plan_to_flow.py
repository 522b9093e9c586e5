"""Conversion of a model's plan into a workflow that can be read, changed and run again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from weft.core.errors import BuildError
from weft.core.ids import is_name
from weft.core.values import JsonSchema
from weft.planner.plan import Plan, PlanStep, Ref, StepCondition, Value
from weft.planner.text.writer import write, write_step
from weft.workflow.document import WorkflowDocument
from weft.workflow.document.references import check_references
from weft.workflow.document.spec.defects import first_defect
from weft.workflow.document.unit import Unit
from weft.workflow.flow import Flow
from weft.workflow.flow.python_values import literal

Declared = Mapping[str, str | Mapping[str, Any]]
"""A section of a workflow file, `tools` or `models`: declarations by name."""

QUESTION: Final = "question"
MODEL: Final = "model"
ANSWER: Final = "answer"
RESULTS: Final = "results"
_SYSTEM: Final = (
    "Answer the question from the results of the calls below. Use nothing else; "
    "if they do not answer it, say so."
)


def flow_of(
    plan: Plan,
    tools: Declared,
    *,
    question: str = "",
    model: str | Mapping[str, Any] | None = None,
    schema: JsonSchema | None = None,
    called: Mapping[str, str] | None = None,
    name: str = "plan",
    folder: Path | None = None,
) -> Flow:
    """The workflow that does what `plan` says, with a node `s3` for step 3.

    `tools` is its section `tools`. `called` maps a step's tool to its declared name where they
    differ. Where an argument equals `question`, the workflow has an input of that name, whose
    default is the question. With `model`, a declared model answers the question from the results
    (as `schema` describes); without it, the results are the outputs. Paths of tools are relative to
    `folder`.

    The flow keeps the steps, their thoughts as descriptions, and what the join names; not the
    thought before the join, and no order that a reference implies.

    Raises: `BuildError` when a tool is not declared, or the plan is empty; `PlanError` for values
    that are not JSON.
    """
    write(plan)
    if not plan.steps and model is None:
        raise BuildError("a plan without steps has nothing to freeze", hint="give it a model")
    freezing = _PlanToFlow(plan, question, dict(called or {}))
    raw: dict[str, Any] = {"name": name, "tools": freezing.used(tools)}
    if question:
        raw["description"] = question
    nodes = {f"s{step.number}": freezing.node(step) for step in plan.steps}
    if model is None:
        outputs = freezing.outputs()
    else:
        raw["models"] = {MODEL: model if isinstance(model, str) else dict(model)}
        nodes.update(freezing.answer(schema))
        outputs = {ANSWER: f"{{{{ {ANSWER} }}}}"}
    if freezing.asks:
        raw["inputs"] = {QUESTION: {"type": "string", "default": question}}
    folder = (folder or Path.cwd()).resolve()
    return _flow({**raw, "nodes": nodes, "outputs": outputs}, folder)


def _flow(raw: dict[str, Any], folder: Path) -> Flow:
    given = {key: value for key, value in raw.items() if value}
    try:
        document = WorkflowDocument.model_validate(given)
    except ValidationError as error:
        defect = first_defect(error, given)
        raise BuildError(defect.message, hint=defect.hint) from error
    unit = Unit(document, folder, folder)
    check_references(unit)
    return Flow.of(unit)


class _PlanToFlow:
    """Builds one document. `asks` becomes true when the input `question` is needed."""

    def __init__(self, plan: Plan, question: str, called: Mapping[str, str]) -> None:
        self._plan = plan
        self._question = question
        self._called = called
        self._results = plan.results or tuple(Ref(step.number) for step in plan.steps)
        self.asks = False

    def used(self, tools: Declared) -> dict[str, Any]:
        """The declarations of the tools that the steps call."""
        used: dict[str, Any] = {}
        for step in self._plan.steps:
            declared = self._tool(step).partition(".")[0]
            if declared not in tools:
                hint = f"say where it is: {declared}: ./tools.py:{step.tool}"
                raise BuildError(
                    f"the tool {step.tool!r} of step {step.number} is not declared", hint=hint
                )
            entry = tools[declared]
            used[declared] = entry if isinstance(entry, str) else dict(entry)
        return used

    def _tool(self, step: PlanStep) -> str:
        return self._called.get(step.tool, step.tool)

    def node(self, step: PlanStep) -> dict[str, Any]:
        """The node of one step."""
        call: dict[str, Any] = {"tool": self._tool(step)}
        if step.arguments:
            call["with"] = {name: self._value(value) for name, value in step.arguments.items()}
        description = {"description": step.thought} if step.thought else {}
        when = {"when": _condition(step.when)} if step.when is not None else {}
        after = {"after": names} if (names := _waited_for(step)) else {}
        if step.over is None:
            return {**call, **when, **after, **description}
        return {"map": _expression(step.over), "do": call, **when, **after, **description}

    def _value(self, value: Value) -> Any:
        if isinstance(value, Ref):
            return _expression(value)
        if isinstance(value, str):
            if value and value == self._question:
                self.asks = True
                return f"{{{{ {QUESTION} }}}}"
            return literal(value)
        if isinstance(value, Mapping):
            return {name: self._value(item) for name, item in value.items()}
        if isinstance(value, (tuple, list)):
            return [self._value(item) for item in value]
        return value

    def outputs(self) -> dict[str, Any]:
        """The results that the join names: `answer`, or one output for each of several."""
        if len(self._results) == 1:
            return {ANSWER: _expression(self._results[0])}
        return {f"result{i}": _expression(ref) for i, ref in enumerate(self._results, 1)}

    def answer(self, schema: JsonSchema | None) -> dict[str, Any]:
        """The answering node, and if results may be skipped, a node before it that collects."""
        self.asks = bool(self._question)
        question = f"{{{{ {QUESTION} }}}}" if self._question else "What do the results say?"
        collected = self._collected()
        lines = [f"{{{{ {RESULTS} }}}}"] if collected else list(map(self._line, self._results))
        prompt = "\n".join([f"Question: {question}", "", "Results:", *(lines or ["none"])])
        node: dict[str, Any] = {"model": MODEL, "system": _SYSTEM, "prompt": prompt}
        if schema is not None:
            node["schema"] = dict(schema)
        return {**collected, ANSWER: node}

    def _line(self, ref: Ref) -> str:
        step = next((step for step in self._plan.steps if step.number == ref.source), None)
        call = f"{write_step(step)} -> " if step is not None else ""
        return f"{literal(call)}{_expression(ref)}" if call else _expression(ref)

    def _collected(self) -> dict[str, Any]:
        """A node that lists the results except skipped ones, if any may be skipped.

        A map skips items on purpose and still fails with items that fail; a join that tolerates a
        missing value would tolerate a failure too.
        """
        doubtful = _doubtful(self._plan.steps)
        if not any(ref.source in doubtful for ref in self._results):
            return {}
        cases = {f"result{i}": ref for i, ref in enumerate(self._results, 1)}
        branches = {case: {"value": _expression(ref)} for case, ref in cases.items()}
        return {RESULTS: {"map": list(cases), "do": {"branch": "{{ item }}", "cases": branches}}}


def _doubtful(steps: Sequence[PlanStep]) -> set[int]:
    """The steps that a condition may skip, directly or through what they refer to."""
    doubtful: set[int] = set()
    for step in steps:
        if step.when is not None or not doubtful.isdisjoint(step.needs):
            doubtful.add(step.number)
    return doubtful


def _waited_for(step: PlanStep) -> list[str]:
    """The nodes that the step waits for without using their values in its own fields.

    Those that only a map's body refers to are among them: without them there is no map either.
    """
    own = step.refs if step.over is None else (step.over, step.when and step.when.ref)
    used = {ref.source for ref in own if ref}
    return [f"s{number}" for number in step.needs if number not in used]


def _expression(ref: Ref) -> str:
    return f"{{{{ {_path(ref)} }}}}"


def _path(ref: Ref) -> str:
    source = ref.source if isinstance(ref.source, str) else f"s{ref.source}"
    return source + "".join(map(_step, ref.path))


def _step(step: str | int) -> str:
    return f".{step}" if isinstance(step, str) and is_name(step) else f"[{step!r}]"


def _condition(condition: StepCondition) -> str:
    path = _path(condition.ref)
    if condition.operator in ("", "not"):
        return f"{{{{ {condition.operator + ' ' if condition.operator else ''}{path} }}}}"
    return f"{{{{ {path} {condition.operator} {_literal(condition.literal)} }}}}"


def _literal(value: Any) -> str:
    """A JSON value as an expression."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{k!r}: {_literal(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(map(_literal, value))}]"
    return repr(value)
