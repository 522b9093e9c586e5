"""Defects planted in documents, found by `weft check` and the skeleton's edges, and repaired.

Each has one planted part. The scripted proposer repairs it from the document before; all else
must stay, byte for byte.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from evals.results import REPOSITORY
from evals.write.imported import SHORT, imports
from evals.write.proposer import GoldAuthor
from evals.write.spans import without_parts
from weft.core.errors import BuildError
from weft.workflow import Models
from weft.workflow.apps.write import repair_flow
from weft.workflow.author.draft import find_defects, raw_document
from weft.workflow.author.edges import document_edges
from weft.workflow.author.fields import OUTPUTS, at, kind_of, node_paths, own_fields
from weft.workflow.document.loader import load_text
from weft.workflow.document.source import KeyPath
from weft.workflow.document.splice import REMOVED, spliced

RATES: Final = (0.0, 0.3)
_REFERENCE: Final = re.compile(r"\{\{ *\(?(\w+)")
Changes = Mapping[KeyPath, Any]
Plant = Callable[[Any, KeyPath, random.Random], Changes | None]


@dataclass(frozen=True, slots=True)
class GoodDocument:
    """A document without defects, as text, with its file, and its edges."""

    name: str
    text: str
    file: Path
    edges: tuple[tuple[str, str], ...]

    @property
    def raw(self) -> Any:
        """The document in plain data."""
        return raw_document(self.text)


@dataclass(frozen=True, slots=True)
class PlantedDefect:
    """A defect of one kind in one part of a document; `text` has it."""

    document: GoodDocument
    kind: str
    part: str
    text: str


def _templates(node: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    """Texts with expressions in the own fields of a node, with their keys: at most two."""
    for key, value in own_fields(node).items():
        if key in ("result", "results"):
            continue
        if isinstance(value, str) and "{{" in value:
            yield (key,), value
        elif key in ("with", "value", "start") and isinstance(value, dict):
            for name, item in value.items():
                if isinstance(item, str) and "{{" in item:
                    yield (key, name), item


def _changed_text(
    raw: Any, path: KeyPath, draw: random.Random, change: Callable[[str], str | None]
) -> Changes | None:
    places = list(_templates(at(raw, path)))
    draw.shuffle(places)
    for keys, text in places:
        new = change(text)
        if new is not None and new != text:
            return {(*path, *keys): new}
    return None


def _lost_edge(raw: Any, path: KeyPath, draw: random.Random) -> Changes | None:
    """No text of the node names one of the nodes that it used."""
    nodes = {path[-1] for path, _ in node_paths(raw)}
    node = at(raw, path)
    places = list(_templates(node))
    used = sorted({m for _, text in places for m in _REFERENCE.findall(text)} & nodes)
    used = [name for name in used if name not in _waited(node)]
    if not used:
        return None
    lost = draw.choice(used)
    expression = re.compile(rf"\{{\{{[^}}]*\b{re.escape(lost)}\b[^}}]*\}}\}}")
    changes = {(*path, *keys): expression.sub("?", text) for keys, text in places}
    return {keys: new for keys, new in changes.items() if new != at(raw, keys)}


def _waited(node: Mapping[str, Any]) -> list[str]:
    after = node.get("after", [])
    return [after] if isinstance(after, str) else list(after)


def _misspelt_name(raw: Any, path: KeyPath, draw: random.Random) -> Changes | None:
    def misspell(text: str) -> str | None:
        found = _REFERENCE.search(text)
        if found is None:
            return None
        return text[: found.start(1)] + found[1] + "_x" + text[found.end(1) :]

    return _changed_text(raw, path, draw, misspell)


def _broken_expression(raw: Any, path: KeyPath, draw: random.Random) -> Changes | None:
    how = draw.choice(
        (lambda text: text.replace("}}", "", 1), lambda t: t.replace("}}", "| huh }}"))
    )
    return _changed_text(raw, path, draw, how)


def _misnamed_tool(raw: Any, path: KeyPath, _: random.Random) -> Changes | None:
    node = at(raw, path)
    return {(*path, "tool"): f"{node['tool']}_x"} if "tool" in node else None


def _missing_argument(raw: Any, path: KeyPath, draw: random.Random) -> Changes | None:
    given = at(raw, path).get("with") if kind_of(at(raw, path)) == "tool" else None
    if not given or len(given) < 2:
        return None
    return {(*path, "with", draw.choice(sorted(given))): REMOVED}


def _unknown_argument(raw: Any, path: KeyPath, draw: random.Random) -> Changes | None:
    given = at(raw, path).get("with") if kind_of(at(raw, path)) == "tool" else None
    if given is None or len(given) < 2:
        return None
    name = draw.choice(sorted(given))
    return {(*path, "with", name): REMOVED, (*path, "with", f"{name}_x"): given[name]}


def _wrong_type(raw: Any, path: KeyPath, draw: random.Random) -> Changes | None:
    """An argument that is a plain value becomes a mapping."""
    given = at(raw, path).get("with") if kind_of(at(raw, path)) == "tool" else None
    given = given or {}
    plain = [n for n, v in given.items() if isinstance(v, bool | int | float | str)]
    plain = [name for name in plain if not str(given[name]).startswith("{{")]
    return {(*path, "with", draw.choice(sorted(plain))): {"wrong": True}} if plain else None


def _unknown_key(raw: Any, path: KeyPath, _: random.Random) -> Changes | None:
    return {(*path, "retyr"): 3} if "nodes" not in at(raw, path) else None


def _wrong_output(raw: Any, path: KeyPath, _: random.Random) -> Changes | None:
    if path != (OUTPUTS,):
        return None
    name = next(iter(raw["outputs"]))
    return {(OUTPUTS, name): "{{ nowhere_to_be_seen }}"}


PLANTS: Final[Mapping[str, Plant]] = {
    "lost_edge": _lost_edge,
    "misspelt_name": _misspelt_name,
    "broken_expression": _broken_expression,
    "misnamed_tool": _misnamed_tool,
    "missing_argument": _missing_argument,
    "unknown_argument": _unknown_argument,
    "wrong_type": _wrong_type,
    "unknown_key": _unknown_key,
    "wrong_output": _wrong_output,
}


def good_documents(folder: Path) -> Iterator[GoodDocument]:
    """The imported samples that are accepted, and the examples, copied below `folder`."""
    for each in imports(folder / "samples", SHORT):
        if not each.defects:
            yield _good(f"sample_{each.made.sample.number}", each.file)
    for source in sorted((REPOSITORY / "examples").glob("*/*.yaml")):
        copy = folder / "examples" / source.parent.name
        if not copy.is_dir():
            shutil.copytree(source.parent, copy)
        file = copy / source.name
        try:
            made = _good(f"{source.parent.name}/{source.stem}", file)
            faulty = find_defects(made.text, file)
        except BuildError:
            continue
        if not faulty:
            yield made


def _good(name: str, file: Path) -> GoodDocument:
    text = file.read_text("utf-8")
    edges = document_edges(load_text(text, str(file)).document)
    return GoodDocument(name, text, file, tuple(sorted(edges)))


def plant(document: GoodDocument, each: int, seed: int = 0) -> Iterator[PlantedDefect]:
    """At most `each` defects of each kind, at parts drawn by `seed`."""
    raw = document.raw
    parts = [*node_paths(raw), ((OUTPUTS,), OUTPUTS)]
    for kind, change in PLANTS.items():
        draw = random.Random(f"{seed} {document.name} {kind}")
        made = 0
        for path, part in draw.sample(parts, len(parts)):
            if made == each:
                break
            if (path == (OUTPUTS,)) != (kind == "wrong_output"):
                continue
            changes = change(raw, path, draw)
            if not changes:
                continue
            try:
                text = spliced(document.text, changes)
            except BuildError:
                continue
            made += 1
            yield PlantedDefect(document, kind, part, text)


@dataclass(frozen=True, slots=True)
class RepairOutcome:
    """What came of one planted defect. `others`: parts besides the planted one that changed."""

    found: bool
    by_check: bool
    repaired: bool
    others: int
    rounds: int
    same: bool


async def repaired(planted: PlantedDefect, models: Models, rate: float, seed: int) -> RepairOutcome:
    """Run the repair workflow on one planted defect."""
    document = planted.document
    at_first = find_defects(planted.text, document.file, document.edges)
    found = any(defect.part == planted.part for defect in at_first)
    alone = any(d.part == planted.part for d in find_defects(planted.text, document.file))
    author = GoldAuthor(document.raw, rate, seed)
    question = repair_flow(planted.text, document.file, author.model(), edges=document.edges)
    result = await question.start(models).wait()
    draft = result.outputs["draft"]
    return RepairOutcome(
        found,
        alone,
        not draft["defects"],
        len(changed_parts(planted.text, draft["text"]) - {planted.part}),
        draft["rounds"],
        raw_document(draft["text"]) == document.raw,
    )


def changed_parts(before: str, after: str) -> set[str]:
    """The parts whose own fields, or whose lines in the text, differ."""
    old, new = raw_document(before), raw_document(after)
    paths = {address: path for path, address in node_paths(old)}
    if paths != {address: path for path, address in node_paths(new)}:
        return {*paths, "?"}
    changed = {
        part
        for part, path in paths.items()
        if json.dumps(own_fields(at(old, path))) != json.dumps(own_fields(at(new, path)))
    }
    if json.dumps(old[OUTPUTS]) != json.dumps(new[OUTPUTS]):
        changed.add(OUTPUTS)
    if {k: v for k, v in old.items() if k not in ("nodes", OUTPUTS)} != {
        k: v for k, v in new.items() if k not in ("nodes", OUTPUTS)
    }:
        changed.add("head")
    return changed | _changed_lines(before, after, changed)


def _changed_lines(before: str, after: str, changed: set[str]) -> set[str]:
    """`lines` where the texts differ outside of the spans of the parts in `changed`."""
    same = without_parts(before, changed) == without_parts(after, changed)
    return set() if same else {"lines"}


def rows(quick: bool) -> list[dict[str, Any]]:
    """One row a figure, for each kind of defect and each rate; over every second document."""
    with tempfile.TemporaryDirectory() as folder:
        documents = list(good_documents(Path(folder)))
        return asyncio.run(_rows(documents[:: 5 if quick else 2]))


async def _rows(documents: Sequence[GoodDocument]) -> list[dict[str, Any]]:
    false_alarms = sum(len(find_defects(each.text, each.file, each.edges)) for each in documents)
    made = [
        _row("documents", "none", "documents", len(documents), "documents"),
        _row("documents", "none", "false_alarms", false_alarms, "defects"),
    ]
    planted = [one for document in documents for one in plant(document, 1)]
    async with Models() as models:
        for rate in RATES:
            outcomes = [(one.kind, await repaired(one, models, rate, 0)) for one in planted]
            system = f"scripted_{rate * 100:.0f}"
            for kind in (*PLANTS, "all"):
                own = [each for name, each in outcomes if kind in (name, "all")]
                made += _figures(kind, system, own)
    return made


def _figures(kind: str, system: str, found: Sequence[RepairOutcome]) -> Iterator[dict[str, Any]]:
    if not found:
        return
    yield _row(kind, system, "planted", len(found), "defects")
    yield _row(kind, system, "found", fmean(each.found for each in found), "share")
    yield _row(kind, system, "found_by_check", fmean(each.by_check for each in found), "share")
    yield _row(kind, system, "mended", fmean(each.repaired for each in found), "share")
    yield _row(kind, system, "as_before", fmean(each.same for each in found), "share")
    yield _row(kind, system, "others_changed", sum(each.others for each in found), "parts")
    yield _row(kind, system, "rounds", fmean(each.rounds for each in found), "rounds")


def _row(case: str, system: str, metric: str, value: float, unit: str) -> dict[str, Any]:
    return {"case": case, "system": system, "metric": metric, "value": value, "unit": unit}
