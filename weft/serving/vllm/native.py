"""Which decoders and options the installed vLLM has, read from its source without loading it.

Knows the shape of one file of vLLM; where that is another one, it says that it does not know.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

_FILE = Path("config", "speculative.py")
_METHODS = "SpeculativeMethod"
_CONFIG = "SpeculativeConfig"


@dataclass(frozen=True, slots=True)
class Native:
    """What `--speculative-config` takes: the values of `method`, and the names of all options."""

    methods: frozenset[str]
    options: frozenset[str]


@lru_cache
def native() -> Native | None:
    """Of the vLLM of this Python; None where there is none or its source is not as expected."""
    found = find_spec("vllm")
    for folder in (found.submodule_search_locations or ()) if found else ():
        try:
            return read((Path(folder) / _FILE).read_text("utf-8"))
        except (OSError, ValueError, RecursionError):
            continue
    return None


def read(source: str) -> Native:
    """What a source text defines. Raises: `ValueError` where it is not the expected one."""
    try:
        module = ast.parse(source)
    except SyntaxError as error:
        raise ValueError(f"no Python: {error}") from error
    literals = {
        target.id: node.value
        for node in module.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    methods = frozenset(_words(ast.Name(_METHODS), literals))
    options = frozenset(
        field.target.id
        for node in module.body
        if isinstance(node, ast.ClassDef) and node.name == _CONFIG
        for field in node.body
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
    )
    if not methods or "method" not in options:
        raise ValueError("not the source of vLLM's speculative config")
    return Native(methods, options)


def _words(node: ast.expr, literals: Mapping[str, ast.expr]) -> Iterator[str]:
    """The strings of a `Literal`, those of the literals that it names included."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.Name) and node.id in literals:
        rest = {name: value for name, value in literals.items() if name != node.id}
        yield from _words(literals[node.id], rest)
    elif isinstance(node, ast.Subscript):
        yield from _words(node.slice, literals)
    elif isinstance(node, ast.Tuple):
        for element in node.elts:
            yield from _words(element, literals)
