"""Digests of functions: equal as long as nothing changed that a function reaches in its package.

Reads source files; imports and runs nothing.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FunctionType
from typing import Any, Final

from weft.agents.tools.code.modules import Module, Package, package_of
from weft.agents.tools.code.reach import Reach
from weft.agents.tools.code.source_snapshot import SourceSnapshot
from weft.agents.tools.code.statements import imports_in, names_in, parsed, statements
from weft.agents.tools.module import is_of_file

_FORMAT: Final = 1
_MOST_KNOWN: Final = 512
_KNOWN: dict[tuple[Path | str, str], tuple[SourceSnapshot, str]] = {}
"""Digests of functions, by where they were looked for, while what they were made of is the same."""
_Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda


def function_digest(source: Path | str, name: str) -> str | None:
    """Of the function `name` of a module, or of a file that is loaded by itself.

    None where there is none such, or where its code goes with a version: in the standard library
    and in weft.
    """
    known = _KNOWN.get((source, name))
    if known is not None and known[0].holds():
        return known[1]
    basis = SourceSnapshot()
    found = _found(source, basis)
    if found is None:
        return None
    package, module = found
    reach = Reach(package)
    reach.name(module, name)
    digest = _hashed(reach.content())
    if basis.certain:
        if len(_KNOWN) >= _MOST_KNOWN:
            _KNOWN.clear()
        _KNOWN[source, name] = basis, digest
    return digest


def object_digest(function: Callable[..., Any]) -> str | None:
    """Of a function that a program has; None where no file says what it is."""
    function = _plain(function)
    if not isinstance(function, FunctionType):
        return None
    home = _home(function)
    if home is None:
        return None
    if "<" not in function.__qualname__ and "." not in function.__qualname__:
        return function_digest(home, function.__name__)
    found = _found(home, SourceSnapshot())
    if found is None:
        return None
    package, module = found
    assert module.file is not None
    source = parsed(module.file)
    nested = [] if source is None else list(_chains(source.tree, function))
    reach = Reach(package)
    texts = [_closure(reach, module, chain) for chain in nested]
    return _hashed([texts, reach.content()]) if texts else None


def _closure(reach: Reach, module: Module, chain: Sequence[_Scope]) -> Sequence[str]:
    """The source of a function within others, with what it uses of theirs; reaches the rest."""
    node = chain[-1]
    texts, names, imports = [ast.unparse(node)], set(names_in([node])), list(imports_in(node))
    for scope in reversed(chain[:-1]):
        local = [] if isinstance(scope, ast.Lambda) else list(statements(scope.body))
        growing = True
        while growing:
            used = [one for one in local if one.binds & names and one.text not in texts]
            texts += [one.text for one in used]
            imports += [found for one in used for found in one.imports]
            names.update(*(one.uses for one in used))
            growing = bool(used)
    reach.used(module, names, imports)
    return texts


def _chains(tree: ast.AST, function: FunctionType) -> Iterator[Sequence[_Scope]]:
    """The nodes of `function`, each behind those around it; of lambdas all in its line."""
    parts = [part for part in function.__qualname__.split(".") if part != "<locals>"]
    first = function.__code__.co_firstlineno

    def search(node: ast.AST, chain: tuple[_Scope, ...]) -> Iterator[Sequence[_Scope]]:
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, _Scope):
                yield from search(child, chain)
                continue
            name = "<lambda>" if isinstance(child, ast.Lambda) else child.name
            if name != parts[len(chain)]:
                continue
            inner = (*chain, child)
            if len(inner) < len(parts):
                yield from search(child, inner)
            elif _first_line(child) == first:
                yield inner

    return search(tree, ())


def _first_line(node: _Scope) -> int:
    decorators = [] if isinstance(node, ast.Lambda) else node.decorator_list
    return min(node.lineno, *(one.lineno for one in decorators), node.lineno)


def _plain(function: Any) -> Any:
    """The function behind methods, partial applications and decorators that say what they wrap."""
    while True:
        if isinstance(function, functools.partial):
            function = function.func
        elif inspect.ismethod(function):
            function = function.__func__
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        else:
            return function


def _home(function: FunctionType) -> Path | str | None:
    """The file that is loaded by itself, or the name of the module, that a function is from."""
    module = sys.modules.get(function.__module__)
    file = getattr(module, "__file__", None)
    if module is None or file is None or not Path(file).is_file():
        return None
    name = module.__name__ if module.__spec__ is None else module.__spec__.name
    if name == "__main__" or is_of_file(name):
        return Path(file)
    return str(name)


def _found(source: Path | str, basis: SourceSnapshot) -> tuple[Package, Module] | None:
    if isinstance(source, Path):
        if not source.is_file():
            return None
        package = Package("", source.parent, basis)
        return package, Module(source.stem, source, is_package=False)
    around = package_of(source, basis)
    module = None if around is None else around.find(source)
    return None if around is None or module is None else (around, module)


def _hashed(content: object) -> str:
    return hashlib.sha256(json.dumps([_FORMAT, content]).encode()).hexdigest()
