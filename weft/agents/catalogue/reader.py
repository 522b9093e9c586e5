"""Reads a catalogue from a file of tool declarations with their fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from weft.agents.catalogue.tree import Catalogue, prefix_paths
from weft.agents.tools.declaration import declaration_of
from weft.agents.tools.declaration_file import read_declarations
from weft.core.errors import BuildError, InputError
from weft.core.values import ToolSpec

_FIELDS: Final = ("category", "categories", "field", "group")
_SUBFIELDS: Final = ("subcategory", "subfield", "subgroup")


def read_catalogue(path: str | Path) -> Catalogue:
    """The catalogue in a JSON or JSON-lines file: see `weft.agents.tools.declaration_file`.

    Each value is a declaration in a form that `tool_from_schema` takes. Its field is `category`,
    `categories`, `field` or `group`: a text such as "Finance/Taxes", or a list; `subcategory`,
    `subfield` or `subgroup` adds to it. Where no declaration has one, they are grouped by the
    prefixes of their names. Unusable and repeated declarations are left out: see
    `Catalogue.refused`.

    Raises: `InputError` for a file that cannot be read, or without usable tools.
    """
    path = Path(path)
    refused: list[str] = []
    found = list(_usable(path, refused))
    if not found:
        why = f": {refused[0]}" if refused else ""
        raise InputError(f"{path} declares no tools{why}", hint="give at least one tool")
    specs = [spec for spec, _ in found]
    paths: Sequence[tuple[str, ...]] = [field for _, field in found]
    if not any(paths):
        paths = prefix_paths([spec.name for spec in specs])
    return Catalogue(zip(specs, paths, strict=True), refused)


def _usable(path: Path, refused: list[str]) -> Iterator[tuple[ToolSpec, tuple[str, ...]]]:
    taken: dict[str, int] = {}
    for number, row in enumerate(read_declarations(path), 1):
        place = f"{path.name}, tool {number}"
        if not isinstance(row, Mapping):
            refused.append(f"{place}: not an object")
            continue
        try:
            declared = declaration_of(row)
        except BuildError as error:
            refused.append(f"{place}: {error.message}")
            continue
        if declared.name in taken:
            refused.append(f"{place}: {declared.name} is declared as tool {taken[declared.name]}")
            continue
        taken[declared.name] = number
        yield (
            ToolSpec(declared.name, declared.description, declared.parameters),
            _field(row),
        )


def _field(row: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of the field of a declaration, from the root; empty without one."""
    inner = row.get("function")
    found: list[str] = []
    for keys in (_FIELDS, _SUBFIELDS):
        for fields in (row, inner if isinstance(inner, Mapping) else {}):
            value = next((fields[key] for key in keys if fields.get(key)), None)
            if value is not None:
                found += _names(value)
                break
    return tuple(found)


def _names(value: object) -> list[str]:
    if isinstance(value, str):
        return value.split("/", 1)
    if isinstance(value, Sequence):
        return [each for each in value if isinstance(each, str)]
    return []
