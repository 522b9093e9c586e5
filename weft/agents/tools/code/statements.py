"""Parses a module into top-level statements: what each defines, uses and imports.

Comments, docstrings and formatting are removed. Runs nothing.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final, Literal, NamedTuple

STAR: Final = "*"
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Definition = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class ImportedName(NamedTuple):
    """`from {level dots}{module} import {name}`; without a name, `import {module}`."""

    module: str
    name: str | None
    level: int = 0


@dataclass(frozen=True, slots=True)
class TopLevelStatement:
    """One statement. `text` is its normalised source, `kind` whether its position may matter.

    `runs`: it has side effects beyond the names in `binds`. `decorators`: the first names of its
    decorators.
    """

    text: str
    kind: Literal["import", "definition", "other"]
    binds: frozenset[str]
    uses: frozenset[str] = frozenset()
    imports: tuple[ImportedName, ...] = ()
    decorators: frozenset[str] = frozenset()
    runs: bool = False


class ParsedModule(NamedTuple):
    """The source of a module: its tree, and its statements."""

    tree: ast.Module
    statements: Sequence[TopLevelStatement]


def parsed(file: Path) -> ParsedModule | None:
    """The source in `file`; None where it cannot be parsed as Python. Raises: `OSError`."""
    state = file.stat()
    return _parsed(file, state.st_mtime_ns, state.st_size, state.st_ino)


@lru_cache(maxsize=512)
def _parsed(file: Path, *_state: int) -> ParsedModule | None:
    try:
        tree = ast.parse(file.read_bytes())
        _WithoutDocstrings().visit(tree)
        return ParsedModule(tree, statements(tree.body))
    except (SyntaxError, ValueError, RecursionError):
        return None


def content_digest(file: Path) -> str:
    """The SHA-256 of a file, in hexadecimal. Raises: `OSError`."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def statements(body: Iterable[ast.stmt]) -> Sequence[TopLevelStatement]:
    """The statements of a body that may matter to users of its names."""
    return tuple(found for node in body for found in _statements(node))


def names_in(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """All names in `nodes`, read or written."""
    return frozenset(
        inner.id for node in nodes for inner in ast.walk(node) if isinstance(inner, ast.Name)
    )


def imports_in(node: ast.AST) -> tuple[ImportedName, ...]:
    """The imports in `node`, at any depth."""
    return tuple(found for inner in ast.walk(node) for _, found in _imports(inner))


def _statements(node: ast.stmt) -> Iterator[TopLevelStatement]:
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        for (bound, found), alias in zip(_imports(node), node.names, strict=True):
            text = f"{'.' * found.level}{found.module}:{found.name} as {alias.asname}"
            binds, runs = frozenset((bound,)), found.name == STAR
            yield TopLevelStatement(text, "import", binds, imports=(found,), runs=runs)
    elif isinstance(node, _Definition):
        roots = names_in(map(_root, node.decorator_list))
        binds, text = frozenset((node.name,)), ast.unparse(node)
        yield TopLevelStatement(
            text, "definition", binds, names_in([node]), imports_in(node), roots
        )
    elif not _idle(node):
        runs, text = _targets(node) is None, ast.unparse(node)
        used, imports = names_in([node]), imports_in(node)
        yield TopLevelStatement(text, "other", _bound(node), used, imports, runs=runs)


def _imports(node: ast.AST) -> Iterator[tuple[str, ImportedName]]:
    """The names that an import binds, and their origins."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield alias.asname or alias.name.partition(".")[0], ImportedName(alias.name, None)
    elif isinstance(node, ast.ImportFrom):
        for alias in node.names:
            yield (
                alias.asname or alias.name,
                ImportedName(node.module or "", alias.name, node.level),
            )


def _targets(node: ast.stmt) -> Sequence[ast.expr] | None:
    """The targets of a plain assignment to names; None for any other statement."""
    match node:
        case ast.Assign(targets=targets):
            found = [part for target in targets for part in _parts(target)]
        case ast.AnnAssign(target=target) | ast.AugAssign(target=target):
            found = [target]
        case _:
            return None
    return found if all(isinstance(target, ast.Name) for target in found) else None


def _parts(target: ast.expr) -> Sequence[ast.expr]:
    return target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]


def _bound(node: ast.stmt) -> frozenset[str]:
    stored = {
        inner.id
        for inner in ast.walk(node)
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store)
    }
    defined = {inner.name for inner in ast.walk(node) if isinstance(inner, _Definition)}
    imported = {bound for inner in ast.walk(node) for bound, _ in _imports(inner)}
    return frozenset(stored | defined | imported)


def _idle(node: ast.stmt) -> bool:
    """Whether a statement has no effect when its module is imported."""
    match node:
        case ast.Pass() | ast.Expr(value=ast.Constant()):
            return True
        case ast.If(test=ast.Compare(left=ast.Name(id="__name__")), orelse=[]):
            return True
    return False


def _root(node: ast.expr) -> ast.expr:
    """The beginning of a chain of calls and attributes."""
    while isinstance(node, (ast.Call, ast.Attribute)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node


class _WithoutDocstrings(ast.NodeTransformer):
    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._stripped(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._stripped(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return self._stripped(node)

    def _stripped(self, node: _Function | ast.ClassDef) -> ast.AST:
        if ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        return self.generic_visit(node)
