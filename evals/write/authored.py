"""Whole workflows written in layers by a scripted author that errs at stated rates.

Gold: the imported samples that can be drawn as skeletons. Scored by F1 over kinds of nodes (with
the tool, and where they stand) and over edges between them.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from evals.planning.workflowbench import Sample
from evals.planning.workflowbench.samples import plan_steps
from evals.write.imported import SHORT, imports
from evals.write.proposer import GoldAuthor
from weft.core.errors import AgentError, BuildError
from weft.workflow import Models
from weft.workflow.apps.tool_sources import ToolSources
from weft.workflow.apps.write import write_flow, written_by
from weft.workflow.author.draft import raw_document
from weft.workflow.author.edges import document_edges, skeleton_of
from weft.workflow.author.intention import Intention, IntentionField
from weft.workflow.author.program import WriteOptions
from weft.workflow.author.skeleton import MOST_NODES, WorkflowSkeleton
from weft.workflow.document.loader import load_text, load_text_partly
from weft.workflow.document.spec.document import node_address, walk
from weft.workflow.document.spec.nodes import ToolNode

RATES: Final = (0.0, 0.1, 0.3)


@dataclass(frozen=True, slots=True)
class GoldWorkflow:
    """A sample with its document, as text and as a skeleton."""

    sample: Sample
    text: str
    tools: Path
    skeleton: WorkflowSkeleton


@dataclass(frozen=True, slots=True)
class Written:
    """What came of one workflow: F1 scores, whether it is accepted, and what it took."""

    node_f1: float
    edge_f1: float
    accepted: bool
    accepted_first: bool
    rounds: int
    calls: int


def gold_workflows(folder: Path) -> Iterator[GoldWorkflow]:
    """The accepted samples that a skeleton can say."""
    for each in imports(folder, SHORT):
        text = each.made.text
        if each.defects:
            continue
        skeleton = skeleton_of(load_text(text, str(each.file)).document)
        if skeleton is not None and len(skeleton.nodes) <= MOST_NODES and each.made.kept.calls:
            nodes = tuple(replace(node, does="") for node in skeleton.nodes)
            made = WorkflowSkeleton(nodes, skeleton.outputs)
            yield GoldWorkflow(each.made.sample, text, each.file.parent / "tools.py", made)


async def write_one(gold: GoldWorkflow, folder: Path, rate: float, models: Models) -> Written:
    """Write the workflow of `gold` anew into `folder`, which has its tools."""
    author = GoldAuthor(
        raw_document(gold.text),
        rate,
        gold.sample.number,
        list(plan_steps(gold.sample.plan))[:40],
        gold.skeleton,
    )
    meant = Intention((), tuple(IntentionField(name) for name in gold.skeleton.outputs))
    sources = ToolSources([str(folder / "tools.py")])
    question = write_flow(
        gold.sample.query, sources, author.model(), folder / "flow.yaml", WriteOptions(meant)
    )
    run = question.start(models)
    result = await run.wait()
    try:
        written = written_by(result)
    except AgentError:
        return Written(0.0, 0.0, False, False, 0, author.calls)
    return Written(
        *scores(gold.text, written.text),
        accepted=not written.remaining,
        accepted_first=written.rounds == 0,
        rounds=written.rounds,
        calls=author.calls,
    )


def scores(gold: str, made: str) -> tuple[float, float]:
    """F1 over nodes and over edges of two documents; 0 for one that cannot be read."""
    (nodes, edges), (own_nodes, own_edges) = _labels(gold), _labels(made)
    return _f1(nodes, own_nodes), _f1(edges, own_edges)


def _labels(text: str) -> tuple[Counter[object], Counter[object]]:
    try:
        unit, _ = load_text_partly(text, Path("flow.yaml"))
    except BuildError:
        return Counter(), Counter()
    labels: dict[str, tuple[str, str]] = {}
    names: dict[str, tuple[str, str]] = {}
    for path, node in walk(unit.document.nodes):
        what = f"tool {node.tool}" if isinstance(node, ToolNode) else node.kind
        around = "/".join(str(part) for part in path if part in ("do", "loop", "cases"))
        names[str(path[-1])] = labels[node_address(path)] = (what, around)
    edges = document_edges(unit.document)
    pairs = Counter((names[name], labels[user]) for name, user in edges if name in names)
    return Counter(labels.values()), Counter(pairs)


def _f1(gold: Mapping[object, int], made: Mapping[object, int]) -> float:
    both = sum((Counter(gold) & Counter(made)).values())
    total = sum(gold.values()) + sum(made.values())
    return 2 * both / total if total else 1.0


def rows(quick: bool) -> list[dict[str, Any]]:
    """Figures for each rate of errors."""
    with tempfile.TemporaryDirectory() as folder:
        found = list(gold_workflows(Path(folder) / "gold"))
        return asyncio.run(_rows(found[::5] if quick else found, Path(folder)))


async def _rows(gold: Sequence[GoldWorkflow], folder: Path) -> list[dict[str, Any]]:
    made = []
    async with Models() as models:
        for rate in RATES:
            place = folder / f"rate_{rate}"
            found = []
            for each in gold:
                own = place / str(each.sample.number)
                shutil.copytree(each.tools.parent, own, ignore=lambda *_: ["flow.yaml"])
                found.append(await write_one(each, own, rate, models))
            figures = {
                "workflows": (len(found), "workflows"),
                "nodes": (fmean(len(each.skeleton.nodes) for each in gold), "nodes"),
                "node_f1": (fmean(each.node_f1 for each in found), "share"),
                "edge_f1": (fmean(each.edge_f1 for each in found), "share"),
                "accepted_first": (fmean(each.accepted_first for each in found), "share"),
                "accepted": (fmean(each.accepted for each in found), "share"),
                "rounds": (fmean(each.rounds for each in found), "rounds"),
                "calls": (fmean(each.calls for each in found), "calls"),
            }
            made += [
                {
                    "case": "workflowbench",
                    "system": f"scripted_{rate * 100:.0f}",
                    "metric": metric,
                    "value": value,
                    "unit": unit,
                }
                for metric, (value, unit) in figures.items()
            ]
    return made
