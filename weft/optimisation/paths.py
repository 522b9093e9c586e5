"""The `choices` of a document's nodes: what recorded runs say of each, and the best combinations.

Nodes at the top of the document only; a choice inside a map, loop or branch is a knob like others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any, Final

from weft.core.errors import InputError, WeftError
from weft.core.ids import NodeId
from weft.evaluation.notes import is_evaluation
from weft.evaluation.program import CASES, RUN, item_of
from weft.evaluation.statistics import quantile_of
from weft.optimisation.edits import Choose, Patch
from weft.optimisation.edits.patch import AnyFlow
from weft.optimisation.edits.rename import names_in
from weft.optimisation.pareto_paths import ParetoPath, PathNode, PathOption, pareto_paths
from weft.optimisation.space import AS_WRITTEN, Knob, declared_space, own_choice
from weft.workflow import WorkflowDocument
from weft.workflow.document.rewrite import plain_document
from weft.workflow.document.spec.nodes import MapNode, WorkflowNode
from weft.workflow.document.spec.optimise import ChoiceSpec
from weft.workflow.history.recorded_workflow import recorded_unit
from weft.workflow.history.run_history import RunHistory

PRIOR_RUNS: Final = 4
"""What a document says of a choice weighs as much as so many runs."""
_PLACE: Final = re.compile(r"[/\[#~]")
_DRAWS: Final = 2_000


@dataclass(frozen=True, slots=True)
class ChoiceObservation:
    """One node in one run: whether it succeeded, its seconds, its cost in US dollars."""

    ok: bool
    seconds: float
    cost: float


@dataclass(frozen=True)
class ChoiceStatistics:
    """A choice of a node: what the document says of it, and what was observed.

    `others`: observations of the node's other choices; their mean time and cost are the prior of a
    choice for which the document gives none.
    """

    declared: ChoiceSpec
    observed: Sequence[ChoiceObservation] = ()
    others: Sequence[ChoiceObservation] = ()

    @cached_property
    def beta(self) -> tuple[float, float]:
        """The posterior of the success: Beta(a, b), uniform without runs and without a figure."""
        good = sum(each.ok for each in self.observed)
        if self.declared.success is None:
            prior = (1.0, 1.0)
        else:
            share = self.declared.success
            prior = (PRIOR_RUNS * share, PRIOR_RUNS * (1 - share))
        return prior[0] + good, prior[1] + len(self.observed) - good

    @property
    def success(self) -> float:
        """Its mean."""
        a, b = self.beta
        return a / (a + b)

    @property
    def success_interval(self) -> tuple[float, float]:
        """Its central 95 %, by drawing."""
        a, b = self.beta
        if not a or not b:
            return self.success, self.success
        random = Random(0)  # noqa: S311
        draws = [random.betavariate(a, b) for _ in range(_DRAWS)]
        return quantile_of(draws, 0.025), quantile_of(draws, 0.975)

    def seconds(self, quantile: float | None = None) -> float:
        """The mean, or a quantile, shrunk to the prior where there are few runs."""
        return _shrunk([each.seconds for each in self.observed], self._prior("latency"), quantile)

    @property
    def cost(self) -> float:
        """The mean in US dollars, shrunk likewise."""
        return _shrunk([each.cost for each in self.observed], self._prior("cost"), None)

    def _prior(self, what: str) -> float | None:
        declared: float | None = getattr(self.declared, what)
        if declared is not None or not self.others:
            return declared
        values = [each.seconds if what == "latency" else each.cost for each in self.others]
        return sum(values) / len(values)


def _shrunk(values: list[float], prior: float | None, quantile: float | None) -> float:
    """The mean or quantile of `values` and `PRIOR_RUNS` times the prior, if there is one."""
    every = values + ([] if prior is None else [prior] * PRIOR_RUNS)
    if not every:
        return 0.0
    return sum(every) / len(every) if quantile is None else quantile_of(every, quantile)


@dataclass(frozen=True, slots=True)
class PathFront:
    """The best combinations, and the statistics they follow from: by node and choice."""

    paths: tuple[ParetoPath, ...]
    statistics: Mapping[str, Mapping[str, ChoiceStatistics]]
    flow: AnyFlow

    def patch(self, path: ParetoPath) -> Patch:
        """The edits that choose it; those of nodes that stay as they are need none."""
        chosen = path.choice
        return Patch(tuple(e for e in _edits(self.flow.document) if chosen[e.node] == e.choice))

    def table(self) -> str:
        """The choices with their figures, and the front, as text for people."""
        lines = [
            f"{'choice':<32} {'runs':>5} {'success':>8} {'95 %':>14} {'time':>10} {'cost':>10}"
        ]
        for node, of in self._shown().items():
            for name, each in of.items():
                low, high = each.success_interval
                lines.append(
                    f"{node + ': ' + name:<32.32} {len(each.observed):>5} {each.success:>8.3f} "
                    f"{f'{low:.3f}..{high:.3f}':>14} {each.seconds():>9.3g}s {each.cost:>9.3g}$"
                )
        lines += ["", f"{'success':>8} {'time':>10} {'cost':>10}  choices"]
        for path in self.paths:
            named = ", ".join(f"{node}: {path.choice[node]}" for node in self._shown())
            lines.append(f"{path.success:>8.3f} {path.seconds:>9.3g}s {path.cost:>9.3g}$  {named}")
        return "\n".join(lines)

    def _shown(self) -> dict[str, Mapping[str, ChoiceStatistics]]:
        return {node: of for node, of in self.statistics.items() if len(of) > 1}


def best_paths(
    flow: AnyFlow,
    history: Iterable[RunHistory] = (),
    *,
    quantile: float | None = None,
    epsilon: float = 0.0,
) -> PathFront:
    """The Pareto-optimal combinations of the document's `choices`: time, cost, success.

    `history`: recorded runs of the workflow with any of its choices, or evaluations of it; a node
    that differs from all of its choices is not counted. `quantile` of the nodes' times instead of
    their means, such as 0.95; their sum is then an upper estimate. `epsilon`: see `pareto_paths`.

    Nodes are taken as independent, and each as if it always ran; a node that only replaces another
    is left out. Raises: `EditError` for a choice that does not fit; `InputError` without choices.
    """
    check_choices(flow)
    if not _edits(flow.document):
        hint = "list some: optimise: {knobs: {NODE: {choices: {NAME: {do: ...}}}}}"
        raise InputError("no node of the workflow has choices", hint=hint)
    statistics = choice_statistics(flow, history)
    nodes = path_nodes(flow.document, statistics, quantile)
    return PathFront(pareto_paths(nodes, epsilon=epsilon), statistics, flow)


def check_choices(flow: AnyFlow) -> None:
    """Make all checks of `weft check` with each choice in place. Raises: `EditError`."""
    for knob in _choice_knobs(flow.document):
        for option in knob.options:
            if option.edit is not None:
                Patch((option.edit,)).apply(flow)


def choice_statistics(
    flow: AnyFlow, history: Iterable[RunHistory]
) -> dict[str, dict[str, ChoiceStatistics]]:
    """What is known of each choice of each node at the top of the document."""
    declared, forms = _declared(flow.document), _forms(flow.document)
    found: dict[str, dict[str, list[ChoiceObservation]]] = {
        node: {name: [] for name in of} for node, of in declared.items()
    }
    for each in history:
        for node, choice, observation in _observations(each, forms):
            found[node][choice].append(observation)
    return {
        node: {
            name: ChoiceStatistics(
                spec,
                tuple(found[node][name]),
                tuple(one for other, of in found[node].items() if other != name for one in of),
            )
            for name, spec in of.items()
        }
        for node, of in declared.items()
    }


def path_nodes(
    document: WorkflowDocument,
    statistics: Mapping[str, Mapping[str, ChoiceStatistics]],
    quantile: float | None = None,
) -> dict[str, PathNode]:
    """The document's graph at the top, each node with its choices."""
    raw = plain_document(document)["nodes"]
    replaced = {step.get(key) for step in raw.values() for key in ("fallback", "degrade")}
    taken = [name for name in raw if name not in replaced]
    return {
        name: PathNode(
            tuple(
                PathOption(choice, each.seconds(quantile), each.cost, each.success)
                for choice, each in statistics[name].items()
            ),
            tuple(other for other in taken if other != name and other in names_in(raw[name])),
            raw[name].get("mode") in ("any", "first_valid") and "join" in raw[name],
        )
        for name in taken
    }


def _choice_knobs(document: WorkflowDocument) -> list[Knob]:
    return [knob for knob in declared_space(document).knobs if knob.kind == "choice"]


def _edits(document: WorkflowDocument) -> list[Choose]:
    """The edits of all choices of nodes at the top."""
    options = (option.edit for knob in _choice_knobs(document) for option in knob.options)
    return [e for e in options if isinstance(e, Choose) and e.node in document.nodes]


def _declared(document: WorkflowDocument) -> dict[str, dict[str, ChoiceSpec]]:
    """The choices of every node at the top, the node as it is first.

    Of a node without choices, or with no word about itself, nothing is expected but that it works.
    """
    knobs = {} if document.optimise is None else document.optimise.knobs
    found: dict[str, dict[str, ChoiceSpec]] = {}
    for node in document.nodes:
        choices = (knobs[node].choices or {}) if node in knobs else {}
        own = own_choice(knobs[node]) if node in knobs else AS_WRITTEN
        certain = ChoiceSpec(success=None if choices else 1.0)
        found[node] = {own: choices.get(own, certain)} | dict(choices)
    return found


def _forms(document: WorkflowDocument) -> dict[str, list[tuple[str, Any]]]:
    """How each choice of each node is written in a document."""
    own = {node: next(iter(of)) for node, of in _declared(document).items()}
    forms = {node: [(own[node], raw)] for node, raw in plain_document(document)["nodes"].items()}
    for edit in _edits(document):
        chosen = plain_document(edit.apply(document))["nodes"][edit.node]
        forms[edit.node].append((edit.choice, chosen))
    return forms


def _observations(
    history: RunHistory, forms: Mapping[str, Sequence[tuple[str, Any]]]
) -> Iterator[tuple[str, str, ChoiceObservation]]:
    """Every node of a run, or of the cases of an evaluation, that is one of the choices."""
    recorded = recorded_workflow(history)
    if recorded is None:
        return
    raw = plain_document(recorded)["nodes"]
    chosen = {
        node: next((name for name, form in of if raw.get(node) == form), None)
        for node, of in forms.items()
    }
    costs: dict[str, float] = {}
    places: dict[str, tuple[str, NodeId]] = {}
    evaluation = is_evaluation(history.header.settings)
    for node, trace in history.trace.nodes.items():
        item = item_of(node) if evaluation else (0, RUN, str(node))
        if item is None or item[1] != RUN or not item[2]:
            continue
        name = place_of(item[2])
        key = f"{item[0]}/{name}"
        costs[key] = costs.get(key, 0.0) + trace.usage.money
        if item[2] == name:
            places[key] = (name, node)
    for key, (name, place) in places.items():
        choice, trace = chosen.get(name), history.trace.nodes[place]
        if choice is None or trace.outcome is None or trace.started_s is None:
            continue
        if trace.outcome.status in ("skipped", "cancelled") or trace.finished_s is None:
            continue
        seconds = trace.finished_s - trace.started_s
        yield name, choice, ChoiceObservation(trace.outcome.ok, seconds, costs[key])


def place_of(node: str) -> str:
    """The node at the top of a workflow that a node of its run is, or is in."""
    return _PLACE.split(node, maxsplit=1)[0]


def recorded_workflow(history: RunHistory) -> WorkflowDocument | None:
    """The workflow of a run, or under evaluation; None where the record alone does not have it."""
    try:
        unit = recorded_unit(history.header, Path.cwd())
    except WeftError:
        return None
    if not is_evaluation(history.header.settings):
        return unit.document
    cases = unit.document.nodes.get(CASES)
    inside = getattr(cases.do, "nodes", {}).get(RUN) if isinstance(cases, MapNode) else None
    if not isinstance(inside, WorkflowNode) or inside.workflow not in unit.includes:
        return None
    return unit.includes[inside.workflow].document
