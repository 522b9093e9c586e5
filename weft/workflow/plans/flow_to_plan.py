"""Conversion of a workflow into a plan, if a plan can express all of its nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Any, Final, NoReturn

from jinja2 import nodes

from weft.core.errors import BuildError, UnknownReference
from weft.planner.compile import follow
from weft.planner.plan import Here, Operator, Plan, PlanStep, Ref, StepCondition, Value
from weft.workflow.document import BaseNode as NodeStep
from weft.workflow.document.expressions import Template, template
from weft.workflow.document.spec.nodes import BranchNode, MapNode, ModelNode, ToolNode
from weft.workflow.document.templates import all_names, inner_names, names_of
from weft.workflow.flow import Flow

_OPERATORS: Final[Mapping[str, Operator]] = {
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "lteq": "<=",
    "gt": ">",
    "gteq": ">=",
}


@dataclass(frozen=True, slots=True)
class ValuePath:
    """A name and the keys and indexes that follow it."""

    name: str
    steps: tuple[str | int, ...] = ()


def path(text: Template) -> ValuePath | None:
    """The path that `text` consists of; None if it is more than a path."""
    expression = _expression(text)
    return None if expression is None else _path(expression)


def paths(text: Template) -> Iterator[ValuePath]:
    """The paths whose values `text` contains, in order."""
    outputs = [] if text.tree is None else text.tree.find_all(nodes.Output)
    parsed = (_path(part) for output in outputs for part in output.nodes)
    return (one for one in parsed if one is not None)


def comparison(text: Template) -> tuple[ValuePath, Operator, Any] | None:
    """The path, operator and literal of a condition that a plan can express."""
    match _expression(text):
        case nodes.Not(node=inner):
            operator: Operator = "not"
            literal = None
        case nodes.Compare(expr=inner, ops=[nodes.Operand(op=op, expr=right)]) if op in _OPERATORS:
            operator = _OPERATORS[op]
            try:
                literal = plain(right.as_const())
            except nodes.Impossible:
                return None
        case inner:
            operator, literal = "", None
    compared = _path(inner)
    return None if compared is None else (compared, operator, literal)


def plain(value: Any) -> Any:
    """JSON data in the form of plans: lists as tuples."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    return tuple(map(plain, value)) if isinstance(value, (list, tuple)) else value


def _expression(text: Template) -> nodes.Node | None:
    if text.kind != "expression" or text.tree is None:
        return None
    assignment = text.tree.body[0]
    assert isinstance(assignment, nodes.Assign)
    return assignment.node


def _path(node: nodes.Node | None) -> ValuePath | None:
    steps: list[str | int] = []
    while True:
        match node:
            case nodes.Name():
                return ValuePath(node.name, tuple(reversed(steps)))
            case nodes.Getattr(node=inner, attr=attribute):
                steps.append(attribute)
            case nodes.Getitem(node=inner, arg=nodes.Const(value=str() | int() as key)):
                steps.append(key)
            case nodes.Getitem(node=inner, arg=nodes.Neg(node=nodes.Const(value=int() as index))):
                steps.append(-index)
            case _:
                return None
        node = inner


_NUMBERED: Final = re.compile(r"s([1-9][0-9]{0,8})\Z")
_EXPRESSIBLE: Final = frozenset(
    ("tool", "arguments", "over", "item", "do", "when", "after", "description")
)


def plan_of(flow: Flow, inputs: Mapping[str, Any] | None = None) -> Plan:
    """The plan that does what `flow` does; `inputs` and defaults of inputs become literals.

    Nodes may be tools, and maps that call a tool; the last may be a model that answers from the
    results. If all nodes have names such as `s3`, they keep their numbers. If the outputs or the
    answer use every node in order, the plan's join names none.

    Raises: `BuildError`, which names the node, for what a plan cannot express.
    """
    return _FlowToPlan(flow, dict(inputs or {})).plan()


class _FlowToPlan:
    def __init__(self, flow: Flow, inputs: dict[str, Any]) -> None:
        self._nodes = dict(flow.nodes)
        self._outputs = dict(flow.outputs)
        defaults = {name: spec.default for name, spec in flow.inputs.items() if not spec.required}
        self._inputs = {**defaults, **inputs}
        for name in flow.inputs:
            if name not in self._inputs:
                hint = "give it: plan_of(flow, inputs={...})"
                raise BuildError(
                    f"the input `{name}` has no value that a plan could hold", hint=hint
                )

    def plan(self) -> Plan:
        """The whole plan."""
        ends = [name for name, node in self._nodes.items() if isinstance(node, ModelNode)]
        collected = [
            name
            for name, node in self._nodes.items()
            if isinstance(node, MapNode) and isinstance(node.do, BranchNode)
        ]
        if len(ends) > 1:
            _refuse(ends[1], "a plan has no model nodes but the one that answers")
        calls = {n: s for n, s in self._nodes.items() if n not in (*ends, *collected)}
        self._numbers = _numbers(calls)
        steps = sorted(
            (self._step(name, node) for name, node in calls.items()), key=lambda step: step.number
        )
        results = tuple(dict.fromkeys(self._results(ends, collected)))
        everything = tuple(Ref(step.number) for step in steps)
        return Plan(tuple(steps), () if results == everything else results)

    def _results(self, ends: list[str], collected: list[str]) -> Iterator[Ref]:
        """The results that the answer uses, in order."""
        if not ends:
            for name, value in self._outputs.items():
                yield self._ref(value, f"the output `{name}`")
        elif collected:
            yield from self._collected(collected[0])
        else:
            node = self._nodes[ends[0]]
            assert isinstance(node, ModelNode)
            for used in paths(template(node.prompt)):
                if used.name in self._numbers:
                    yield Ref(self._numbers[used.name], used.steps)

    def _collected(self, name: str) -> Iterator[Ref]:
        node = self._nodes[name]
        assert isinstance(node, MapNode)
        assert isinstance(node.do, BranchNode)
        for case in node.do.cases.values():
            yield self._ref(getattr(case, "value", None), name)

    def _step(self, name: str, node: NodeStep) -> PlanStep:
        number = self._numbers[name]
        thought = node.description or ""
        if isinstance(node, ToolNode):
            self._check(name, node)
            arguments = self._arguments(node, {}, name)
            when, after = self._when(node, name), self._after(node)
            return PlanStep(number, node.tool, arguments, None, when, thought, after=after)
        if not isinstance(node, MapNode) or not isinstance(node.do, ToolNode):
            _refuse(name, f"a plan has no {node.kind} nodes like this")
        self._check(name, node)
        self._check(name, node.do)
        if self._after(node.do):
            _refuse(name, "a plan has no order of an item")
        here: dict[str, Here] = {node.item: "item", "index": "index"}
        if node.do.when is not None:
            _refuse(name, "a plan has no condition on an item")
        over = self._ref(node.over, name)
        arguments = self._arguments(node.do, here, name)
        when, after = self._when(node, name), self._after(node)
        return PlanStep(number, node.do.tool, arguments, over, when, thought, after=after)

    def _check(self, name: str, node: NodeStep) -> None:
        for key in sorted(node.model_fields_set - _EXPRESSIBLE):
            _refuse(name, f"a plan cannot say `{key}`")
        for other in set(node.after) - self._numbers.keys():
            _refuse(name, f"a plan cannot wait for `{other}`: it is no call of a tool")

    def _after(self, node: NodeStep) -> tuple[int, ...]:
        """The steps that `node` waits for without using their values."""
        only = set(node.after) - names_of(node) - inner_names(node)
        return tuple(sorted(self._numbers[other] for other in only))

    def _arguments(self, node: ToolNode, here: Mapping[str, Here], name: str) -> dict[str, Value]:
        return {key: self._value(value, here, name) for key, value in node.arguments.items()}

    def _value(self, value: Any, here: Mapping[str, Here], name: str) -> Value:
        if isinstance(value, str):
            return self._text(template(value), here, name)
        if isinstance(value, Mapping):
            return {key: self._value(item, here, name) for key, item in value.items()}
        if isinstance(value, list):
            return tuple(self._value(item, here, name) for item in value)
        return value

    def _text(self, text: Template, here: Mapping[str, Here], name: str) -> Value:
        value_path = path(text)
        if value_path is not None:
            return self._referred(value_path, here, name)
        if text.references:
            _refuse(name, f"a plan cannot compute {text.text!r:.60}: it only refers to results")
        return text.render({})

    def _referred(self, value_path: ValuePath, here: Mapping[str, Here], name: str) -> Value:
        if value_path.name in here:
            return Ref(here[value_path.name], value_path.steps)
        if value_path.name in self._numbers:
            return Ref(self._numbers[value_path.name], value_path.steps)
        if value_path.name not in self._inputs:
            _refuse(name, f"a plan cannot use `{value_path.name}`: it is no call of a tool")
        try:
            return plain(
                follow(Ref("item", value_path.steps), {"item": self._inputs[value_path.name]})
            )
        except UnknownReference as error:
            raise BuildError(f"the input `{value_path.name}`: {error.message}") from None

    def _ref(self, value: Any, name: str) -> Ref:
        reference = self._value(value, {}, name)
        if not isinstance(reference, Ref):
            _refuse(name, f"a plan refers to a result here, not to {value!r:.60}")
        return reference

    def _when(self, node: NodeStep, name: str) -> StepCondition | None:
        if node.when is None:
            return None
        condition = comparison(template(node.when))
        if condition is None:
            _refuse(
                name, f"a plan cannot ask {node.when!r:.60}: it compares a result with a literal"
            )
        compared, operator, literal = condition
        ref = self._referred(compared, {}, name)
        if not isinstance(ref, Ref):
            _refuse(name, "a condition of a plan refers to a result")
        return StepCondition(ref, operator, literal)


def _numbers(nodes: Mapping[str, NodeStep]) -> dict[str, int]:
    """A number for each node, larger than those of the nodes that it refers to."""
    needs = {name: [n for n in nodes if n in all_names(node)] for name, node in nodes.items()}
    own = {name: int(match[1]) for name in nodes if (match := _NUMBERED.match(name))}
    if len(own) == len(nodes) and all(own[n] < own[name] for name in nodes for n in needs[name]):
        return own
    return {name: number for number, name in enumerate(_in_order(needs), 1)}


def _in_order(needs: Mapping[str, list[str]]) -> Iterator[str]:
    """Every name after those it needs, otherwise in the order of declaration."""
    declared = list(needs)
    sorter = TopologicalSorter(needs)
    sorter.prepare()
    while sorter.is_active():
        for name in sorted(sorter.get_ready(), key=declared.index):
            yield name
            sorter.done(name)


def _refuse(node: str, why: str) -> NoReturn:
    hint = "a plan has calls of tools, for each item of a list or once, and conditions"
    raise BuildError(why, node=node, hint=hint)
