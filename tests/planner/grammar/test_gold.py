"""The gold plans of the function-calling sets: what the checker accepts, a grammar accepts.

TaskBench's file has requests without plans, and WorFBench's plans are sentences without arguments.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

import weft
from evals.planning.data import Skipped, load, load_lines
from tests.planner.grammar.random_texts import Grammar
from weft.agents.untrusted import identifier
from weft.core.errors import PlanError
from weft.core.values import ToolSpec
from weft.planner.check import check
from weft.planner.grammar import most_steps, plan_grammar
from weft.planner.plan import Plan, PlanStep, Ref, Value
from weft.planner.text.writer import write

_ORDERS = 2
_REFERENCE = re.compile(r"\$var(\d+)((?:\.\w+|\[\d+\])*)\$")
_PART = re.compile(r"\w+")


def _tools(declared: list[dict[str, Any]]) -> tuple[ToolSpec, ...]:
    def anything(**_: object) -> None:
        """Stands for a function of the set."""

    return tuple(weft.tool_from_schema(anything, one).spec for one in declared)


def bfcl() -> Iterator[tuple[tuple[ToolSpec, ...], Plan]]:
    for category in ("simple_python", "parallel", "parallel_multiple"):
        gold = load_lines(f"planner/bfcl_v4/possible_answer/BFCL_v4_{category}.json")
        calls = {one["id"]: one["ground_truth"] for one in gold}
        for item in load_lines(f"planner/bfcl_v4/BFCL_v4_{category}.json"):
            steps = [
                PlanStep(number, identifier(name), _given(arguments))
                for number, call in enumerate(calls[item["id"]], 1)
                for name, arguments in call.items()
            ]
            yield _tools(item["function"]), Plan(tuple(steps))


def _given(arguments: Mapping[str, list[Any]]) -> dict[str, Value]:
    """The first of the values that are right; "" says that the argument may be left out."""
    return {name: _value(values[0]) for name, values in arguments.items() if "" not in values}


def _value(value: Any) -> Value:
    if isinstance(value, dict):  # each of its values is a list of right ones as well
        return {
            name: _value(one[0] if isinstance(one, list) and one else one)
            for name, one in value.items()
            if not (isinstance(one, list) and "" in one)
        }
    return tuple(map(_value, value)) if isinstance(value, list) else value


def sealtools() -> Iterator[tuple[tuple[ToolSpec, ...], Plan]]:
    tools = {one["api_name"]: one for one in load_lines("programs/sealtools-dev/tools.jsonl")}
    for item in load_lines("programs/sealtools-dev/dev_clean.jsonl"):
        called = list(dict.fromkeys(call["api"] for call in item["calling"]))
        steps = [
            PlanStep(
                number,
                identifier(call["api"]),
                {k: _frozen(v) for k, v in call["parameters"].items()},
            )
            for number, call in enumerate(item["calling"], 1)
        ]
        yield _tools([tools[name] for name in called]), Plan(tuple(steps))


def _frozen(value: Any) -> Value:
    if isinstance(value, dict):
        return {name: _frozen(one) for name, one in value.items()}
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def nestful() -> Iterator[tuple[tuple[ToolSpec, ...], Plan]]:
    """Plans whose steps use the results of others: `$var1.distance$`."""
    for part in ("glaive", "sgd"):
        tools = {
            one["name"]: one for one in load(f"planner/nestful/non-executable-{part}-spec.json")
        }
        for item in load(f"planner/nestful/non-executable-{part}-data.json"):
            calls = [call for call in item["output"] if call["name"] != "var_result"]
            called = dict.fromkeys(call["name"] for call in calls)
            steps = [
                PlanStep(number, identifier(call["name"]), _referring(call["arguments"]))
                for number, call in enumerate(calls, 1)
            ]
            yield (
                _tools([_plain(tools[name]) for name in called if name in tools]),
                Plan(tuple(steps)),
            )


def _plain(tool: Mapping[str, Any]) -> dict[str, Any]:
    """A specification of NESTFUL in the form of a declaration."""
    given = tool.get("query_parameters") or tool.get("arguments") or tool.get("parameters") or {}
    kinds = {name: {"type": one["type"]} if "type" in one else {} for name, one in given.items()}
    required = [name for name, one in given.items() if one.get("required")]
    schema = {"type": "object", "properties": kinds, "required": required}
    return {"name": tool["name"], "description": tool["description"], "parameters": schema}


def _referring(value: Any) -> Value:
    if isinstance(value, dict):
        return {name: _referring(one) for name, one in value.items()}
    if isinstance(value, list):
        return tuple(map(_referring, value))
    found = _REFERENCE.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return value
    path = [int(part) if part.isdigit() else part for part in _PART.findall(found[2])]
    return Ref(int(found[1]), tuple(path))


def apibank() -> Iterator[tuple[tuple[ToolSpec, ...], Plan]]:
    """The calls of a dialogue, each of whose arguments is a text, as one plan."""
    for dialogue in load_lines("programs/apibank/dialogues.jsonl"):
        calls = [turn for turn in dialogue["turns"] if turn["role"] == "API"]
        names: dict[str, dict[str, Any]] = {}
        for call in calls:
            texts = {name: {"type": "string"} for name in call["param_dict"]}
            names[call["api_name"]] = names.get(call["api_name"], {}) | texts
        declared = [
            {
                "name": name,
                "description": name,
                "parameters": {"type": "object", "properties": kinds},
            }
            for name, kinds in names.items()
        ]
        steps = (
            PlanStep(number, identifier(call["api_name"]), _frozen(call["param_dict"]))
            for number, call in enumerate(calls, 1)
        )
        yield _tools(declared), Plan(tuple(steps))


def _mixed(value: Value, source: random.Random) -> Value:
    if isinstance(value, Mapping):
        return {
            name: _mixed(value[name], source) for name in source.sample(list(value), len(value))
        }
    return tuple(_mixed(one, source) for one in value) if isinstance(value, tuple) else value


def _counts(plans: Iterator[tuple[tuple[ToolSpec, ...], Plan]]) -> tuple[int, int, list[str]]:
    """How many plans there are and how many check; and the texts that a grammar refuses."""
    source = random.Random(25)
    found = checked = 0
    refused = []
    for tools, plan in plans:
        found += 1
        try:
            check(plan, tools)
        except PlanError:
            continue
        checked += 1
        grammar = Grammar(plan_grammar(tools, min(most_steps(tools), max(1, len(plan.steps)))))
        orders = [plan, *(_in_another_order(plan, source) for _ in range(_ORDERS))]
        refused += [text for text in map(write, orders) if not grammar.holds(text)]
    return found, checked, refused


def _in_another_order(plan: Plan, source: random.Random) -> Plan:
    steps = (PlanStep(one.number, one.tool, _mixed(one.arguments, source)) for one in plan.steps)
    return Plan(tuple(steps), plan.results)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::weft.agents.untrusted.schema.ContradictorySchema")
@pytest.mark.parametrize(
    ("plans", "number", "least"),
    [(bfcl, 800, 780), (sealtools, 404, 340), (nestful, 215, 100), (apibank, 264, 264)],
)
def test_gold_plans_in_any_order(plans: Any, number: int, least: int) -> None:
    try:
        found, checked, refused = _counts(plans())
    except Skipped as reason:
        pytest.skip(str(reason))
    print(json.dumps({"found": found, "checked": checked, "refused": len(refused)}))
    assert found == number
    assert checked >= least
    assert not refused
