"""Differences between a workflow and its recorded version, node by node. Runs nothing."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from weft.core.errors import SourceError
from weft.core.ids import NodeId, is_name, pattern_of, stem
from weft.core.ports.journal import RunHeader
from weft.workflow.compile.identity import Digests, identity_of
from weft.workflow.compile.sources import RecordedDigests, digests_like, sources_of, texts_in
from weft.workflow.document.loader import load_texts
from weft.workflow.document.secrets import recorded_sources
from weft.workflow.document.spec.document import bodies
from weft.workflow.document.spec.nodes import BaseNode, Block, WorkflowNode
from weft.workflow.document.templates import all_names
from weft.workflow.document.unit import Unit

Verdict = Literal["unchanged", "changed", "new", "gone"]
Fate = Literal["kept", "kept while its inputs stay the same", "runs again", "dropped", ""]


@dataclass(frozen=True, slots=True)
class NodeChange:
    """A node of the workflow, then and now.

    `finished`: how many of its instances had succeeded; `fate`: what happens to them. `acted`: how
    many of their calls must not be repeated, and were or may have been carried out; `pattern`
    matches all of these instances. `doubtful`: its inputs may have changed.
    """

    node: str
    verdict: Verdict
    finished: int = 0
    fate: Fate = ""
    acted: int = 0
    pattern: str = ""
    doubtful: bool = False

    @property
    def may_act_twice(self) -> bool:
        """Whether resuming may repeat a call that must not be repeated."""
        return bool(self.acted) and (self.verdict != "unchanged" or self.doubtful)


@dataclass(frozen=True, slots=True)
class WorkflowDiff:
    """`files` that differ, each with a verdict; `nodes` in the order of the document.

    `lines` is the difference of the documents' texts; `needs`: for each node of the current
    workflow the nodes whose values it takes. `nodes` is empty where the recorded workflow cannot be
    read by itself.
    """

    files: Mapping[str, Verdict]
    nodes: tuple[NodeChange, ...]
    lines: tuple[str, ...] = ()
    outputs: bool = False
    needs: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def matter(self) -> bool:
        """Whether a result may differ."""
        if not self.nodes:
            return bool(self.files)
        return self.outputs or any(node.verdict != "unchanged" for node in self.nodes)


def diff_workflow(
    header: RunHeader,
    unit: Unit,
    finished: Mapping[NodeId, int],
    acted: Mapping[NodeId, int] | None = None,
) -> WorkflowDiff:
    """Compare the recorded workflow of a run with `unit`, the current one.

    `finished` counts the successful instances of each node, by id; `acted` its calls that must not
    be repeated.
    """
    now = sources_of(unit, digests := digests_like(header))
    then_texts = recorded_sources(header)
    files = _files(then_texts, now)
    try:
        then = load_texts(texts_in(then_texts), unit.root)
    except SourceError:
        return WorkflowDiff(files, (), _lines(then_texts, now))
    counts = Counter[str]()
    for node, number in finished.items():
        counts[stem(node)] += number
    ran = frozenset(label for node in (*counts, *map(stem, acted or {})) for label in _path(node))
    before = dict(_NodeDescriber(RecordedDigests(header), ran).nodes(then))
    after = dict(_NodeDescriber(digests, ran).nodes(unit))
    effects = Counter[str]()
    patterns: dict[str, str] = {}
    for node, number in (acted or {}).items():
        effects[stem(node)] += number
        patterns[stem(node)] = pattern_of(node)
    nodes = tuple(
        replace(node, acted=effects[node.node], pattern=patterns.get(node.node, ""))
        for node in (*_kept(before, after, counts), *_gone(before, after, counts))
    )
    outputs = then.document.outputs != unit.document.outputs
    needs = {label: node.needs for label, node in after.items()}
    return WorkflowDiff(files, nodes, _lines(then_texts, now), outputs, needs)


@dataclass(frozen=True, slots=True)
class _DocumentNode:
    """A declared node; `needs` are other nodes by their labels."""

    identity: str
    needs: frozenset[str]


def _path(node: str) -> Iterator[str]:
    """A node and all that it is inside of."""
    steps = node.split("/")
    return ("/".join(steps[:depth]) for depth in range(1, len(steps) + 1))


class _NodeDescriber:
    """The nodes of a workflow, of bodies and included files too, labelled like their ids.

    `ran`: labels of nodes that ran. Where a workflow runs itself, only those are followed.
    """

    def __init__(self, digests: Digests, ran: frozenset[str]) -> None:
        self._digests = digests
        self._ran = ran
        self._identities: dict[int, str] = {}  # by the node's `id`; units keep nodes alive

    def nodes(
        self, unit: Unit, prefix: str = "", around: tuple[Unit, ...] = ()
    ) -> Iterator[tuple[str, _DocumentNode]]:
        """The nodes of `unit`, which is inside of `around`."""
        if unit not in around or prefix.removesuffix("/") in self._ran:
            yield from self._level(unit.document.nodes, prefix, {}, (*around, unit))

    def _level(
        self,
        steps: Mapping[str, BaseNode],
        prefix: str,
        names: Mapping[str, str],
        around: tuple[Unit, ...],
    ) -> Iterator[tuple[str, _DocumentNode]]:
        names = {**names, **{name: prefix + name for name in steps}}
        for name, step in steps.items():
            yield from self._one(prefix + name, step, names, around)

    def _one(
        self, label: str, step: BaseNode, names: Mapping[str, str], around: tuple[Unit, ...]
    ) -> Iterator[tuple[str, _DocumentNode]]:
        used = all_names(step) | {name for name in (step.fallback, step.degrade) if name}
        needs = frozenset(names[name] for name in used if name in names and names[name] != label)
        yield label, _DocumentNode(self._identity(step, around[-1]), needs)
        cases = [inside.path[-1] for inside in bodies(step) if inside.path[-1] != "default"]
        for inside in bodies(step):
            if isinstance(inside.body, Block):
                case = _case(inside.path, cases)
                yield from self._level(inside.body.nodes, f"{label}/{case}", names, around)
        if isinstance(step, WorkflowNode):
            yield from self.nodes(around[-1].includes[step.workflow], f"{label}/", around)

    def _identity(self, step: BaseNode, unit: Unit) -> str:
        if id(step) not in self._identities:
            self._identities[id(step)] = identity_of(step, unit, self._digests)
        return self._identities[id(step)]


def _case(path: tuple[str | int, ...], cases: list[str | int]) -> str:
    """The path between a branch and the nodes of its case; empty for other containers."""
    if path[0] != "cases":
        return ""
    case = str(path[1])
    if case == "default":
        return "otherwise/"
    return f"{case if is_name(case) else f'case{cases.index(case)}'}/"


def _kept(
    before: Mapping[str, _DocumentNode], after: Mapping[str, _DocumentNode], finished: Counter[str]
) -> Iterator[NodeChange]:
    verdicts: dict[str, Verdict] = {}
    for label, node in after.items():
        old = before.get(label)
        same = old is not None and old.identity == node.identity
        verdicts[label] = "new" if old is None else "unchanged" if same else "changed"
    doubtful = downstream(
        {label: node.needs for label, node in after.items()},
        {label for label, verdict in verdicts.items() if verdict != "unchanged"},
    )
    for label, verdict in verdicts.items():
        fate: Fate = "kept while its inputs stay the same" if label in doubtful else "kept"
        if verdict != "unchanged":
            fate = "runs again"
        count = finished[label]
        yield NodeChange(label, verdict, count, fate if count else "", doubtful=label in doubtful)


def _gone(
    before: Mapping[str, _DocumentNode], after: Mapping[str, _DocumentNode], finished: Counter[str]
) -> Iterator[NodeChange]:
    for label in before:
        if label not in after:
            count = finished[label]
            yield NodeChange(label, "gone", count, "dropped" if count else "")


def downstream(nodes: Mapping[str, frozenset[str]], changed: set[str]) -> set[str]:
    """`changed`, and the nodes that use their values or are inside of such nodes.

    `nodes`: each with those that it needs.
    """
    affected = set(changed)
    growing = True
    while growing:
        more = {
            label
            for label, needs in nodes.items()
            if label not in affected and (needs & affected or _outer(label, affected))
        }
        affected |= more
        growing = bool(more)
    return affected


def _outer(label: str, affected: set[str]) -> bool:
    # Nodes inside a changed container get their values from it.
    steps = label.split("/")
    return any("/".join(steps[:depth]) in affected for depth in range(1, len(steps)))


def _files(then: Mapping[str, str], now: Mapping[str, str]) -> dict[str, Verdict]:
    verdicts: dict[str, Verdict] = {}
    for path in (*then, *(path for path in now if path not in then)):
        if path not in now:
            verdicts[path] = "gone"
        elif path not in then:
            verdicts[path] = "new"
        elif then[path] != now[path]:
            verdicts[path] = "changed"
    return verdicts


def _lines(then: Mapping[str, str], now: Mapping[str, str]) -> tuple[str, ...]:
    old, new = texts_in(then), texts_in(now)
    lines: list[str] = []
    for path in dict.fromkeys((*old, *new)):
        before, after = old.get(path, "").splitlines(), new.get(path, "").splitlines()
        lines += difflib.unified_diff(
            before, after, path, path, "recorded", "now", lineterm="", n=1
        )
    return tuple(lines)
