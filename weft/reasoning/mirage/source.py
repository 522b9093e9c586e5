"""Where a knowledge graph comes from: a file, a list of triples, or the question's documents."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from weft.core.errors import BuildError, InputError
from weft.reasoning.mirage.graph import KnowledgeGraph
from weft.reasoning.mirage.triples import Triple, read_triples
from weft.reasoning.question import Document

MOST_BYTES: Final = 16 * 2**20
"""Of a file of triples: it is read at once, while the run waits."""

GraphSource = str | Sequence[Sequence[str]] | None
"""The path of a file, triples, or None: only the documents."""


def check_source(given: Any) -> GraphSource:
    """`given`, if it is a source. Raises: `BuildError`."""
    if given is None or (isinstance(given, str) and given):
        return given
    if isinstance(given, Sequence) and all(map(_is_triple, given)):
        return tuple(given)
    raise BuildError(
        "mirage: setting 'graph' is neither a file nor a list of triples",
        hint='for example graph: facts.csv, or graph: [["Bonn", "lies on", "Rhine"]]',
    )


def graph_of(source: GraphSource, documents: Sequence[Document]) -> KnowledgeGraph:
    """The graph of all triples in `source`, and after them in `documents`.

    Raises: `InputError`, which names the place, when there is something else in them.
    """
    triples: list[Triple] = []
    if isinstance(source, str):
        triples += read_triples(Document(Path(source).name, _text_of(Path(source))))
    elif source is not None:
        triples += [_stated(number, triple) for number, triple in enumerate(source, 1)]
    for document in documents:
        triples += read_triples(document)
    return KnowledgeGraph(triples)


def _text_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            held = file.read(MOST_BYTES + 1)
        if len(held) > MOST_BYTES:
            raise InputError(f"{path} is larger than {MOST_BYTES // 2**20} MiB")
        return held.decode("utf-8")
    except (OSError, ValueError) as error:
        raise InputError(
            f"the knowledge graph {path} cannot be read: {error}",
            hint="give a file of triples as JSON or CSV, in UTF-8",
        ) from None


def _is_triple(given: Any) -> bool:
    return (
        isinstance(given, Sequence)
        and not isinstance(given, str)
        and len(given) == len(("subject", "relation", "object"))
        and all(isinstance(part, str) and part.strip() for part in given)
    )


def _stated(number: int, triple: Sequence[str]) -> Triple:
    subject, relation, of = (" ".join(part.split()) for part in triple)
    text = f"{subject} | {relation} | {of}"
    return Triple(subject, relation, of, f"graph[{number}]", 0, len(text), text)
