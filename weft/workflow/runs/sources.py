"""What a workflow was made of, for the record: its files' texts, and digests of its code.

Reads files; runs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from weft.workflow.compile.identity import digest_of, identity_of
from weft.workflow.document.write import to_yaml
from weft.workflow.unit import Unit

CODE = "sha256:"
"""How the entry of a file begins whose content is not kept."""


@dataclass(slots=True)
class Digests:
    """Reads each file once, and remembers what it was asked for."""

    found: dict[Path, str | None] = field(default_factory=dict)

    def __call__(self, file: Path) -> str | None:
        """The digest of a file, None where there is none."""
        place = file.resolve()
        if place not in self.found:
            self.found[place] = digest_of(place)
        return self.found[place]


def sources_of(unit: Unit, digests: Digests) -> dict[str, str]:
    """The text of each document by its path in the workflow's folder, the workflow itself first.

    The files that its nodes take code and data from are there too, as `sha256:` and a digest.
    """
    texts: dict[str, str] = {}
    for included in unit.everything():
        origin = included.origin
        text = to_yaml(included.document) if origin is None else origin.source.text
        texts[_free(_place(included, unit.root), texts)] = text
        for step in included.document.nodes.values():
            identity_of(step, included, digests)
    for file, digest in sorted(digests.found.items()):
        if digest is not None:
            texts[_relative(file, unit.root)] = CODE + digest
    return texts


def stands_in_file(unit: Unit) -> bool:
    """Whether the workflow was read from a file, so that it can be read from there again."""
    return unit.origin is not None and Path(unit.origin.source.file).is_file()


def texts_in(document: Mapping[str, str]) -> dict[str, str]:
    """Those of the entries that are documents."""
    return {path: text for path, text in document.items() if not text.startswith(CODE)}


def digests_in(document: Mapping[str, str]) -> dict[str, str]:
    """The digests of the others, by path."""
    code = {path: text for path, text in document.items() if text.startswith(CODE)}
    return {path: text.removeprefix(CODE) for path, text in code.items()}


def _place(unit: Unit, root: Path) -> str:
    file = None if unit.origin is None else Path(unit.origin.source.file)
    if file is None or not file.is_file():
        return f"{unit.document.name}.yaml"
    return _relative(file.resolve(), root)


def _relative(file: Path, root: Path) -> str:
    return file.relative_to(root).as_posix() if file.is_relative_to(root) else file.as_posix()


def _free(name: str, taken: Mapping[str, str]) -> str:
    while name in taken:
        name = f"also-{name}"
    return name
