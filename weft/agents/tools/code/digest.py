"""Digests of functions: equal as long as nothing changed that a function reaches in its package.

Every name in the code counts as a dependency, which may include too much. Dependencies by other
means (`getattr`, `importlib`, values captured by a closure) are not followed. Reads source files;
imports and runs nothing.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import FunctionType
from typing import Any, Final

from weft.agents.tools.code.sources import (
    SourceModule,
    SourcePackage,
    SourceSnapshot,
    ancestors,
    is_of_file,
    package_of,
)
from weft.agents.tools.code.statements import (
    STAR,
    ImportedName,
    ParsedModule,
    TopLevelStatement,
    content_digest,
    imports_in,
    names_in,
    parsed,
    statements,
)

_IsOwn = Callable[[SourceModule, ImportedName], bool]


class ReachableCode:
    """Collects the reachable code of one package; see `content`."""

    def __init__(self, package: SourcePackage) -> None:
        self._package = package
        self._modules: dict[str, _ReachedModule] = {}
        self._missing: set[str] = set()

    def content(self) -> object:
        """The collected code as JSON, in an order independent of the path to it."""
        modules = {name: reached.content() for name, reached in self._modules.items()}
        return [sorted(modules.items()), sorted(self._missing)]

    def name(self, module: SourceModule, name: str) -> None:
        """Collect the definition of `name` at the top level of `module`."""
        reached = self._reached(module)
        if name in reached.binds:
            self._names(reached, (name,))
        elif (inner := self._package.find(f"{module.name}.{name}")) is not None:
            self.everything(inner)
        else:
            self._collect(reached, reached.statements)

    def everything(self, module: SourceModule) -> None:
        """Collect the whole module."""
        reached = self._reached(module)
        self._collect(reached, reached.statements)

    def used(
        self, module: SourceModule, names: Iterable[str], imports: Sequence[ImportedName]
    ) -> None:
        """Collect the dependencies of code in `module` that uses `names` and has `imports`."""
        reached = self._reached(module)
        self._names(reached, names)
        for one in imports:
            self._imported(module, one)

    def _reached(self, module: SourceModule) -> _ReachedModule:
        found = self._modules.get(module.name)
        if found is None:
            source = _source(module, self._package.basis)
            found = self._modules[module.name] = _ReachedModule(module, source, self._is_own)
            for name in ancestors(module.name):  # imported before the module
                around = self._package.find(name)
                if around is not None:
                    self._reached(around)
            self._collect(found, [one for one in found.statements if found.is_carried_out(one)])
        return found

    def _names(self, reached: _ReachedModule, names: Iterable[str]) -> None:
        found = [one for name in names for one in reached.binding.get(name, ())]
        self._collect(reached, found)

    def _collect(self, reached: _ReachedModule, found: Iterable[TopLevelStatement]) -> None:
        pending = list(found)
        while pending:
            one = pending.pop()
            if one in reached.taken:
                continue
            reached.taken.add(one)
            for imported in one.imports:
                self._imported(reached.module, imported)
            for name in one.uses:
                pending += reached.binding.get(name, ())

    def _imported(self, module: SourceModule, one: ImportedName) -> None:
        target = self._package.target(module, one.module, one.level)
        if target is None:
            return
        found = self._package.find(target)
        if one.name is None or one.name == STAR:
            if found is not None:
                self.everything(found)
        elif found is not None:
            self.name(found, one.name)
        elif (inner := self._package.find(f"{target}.{one.name}".lstrip("."))) is not None:
            self.everything(inner)
        else:
            self._missing.add(f"{target}:{one.name}")

    def _is_own(self, module: SourceModule, one: ImportedName) -> bool:
        return self._package.target(module, one.module, one.level) is not None


class _ReachedModule:
    """A module with its collected statements."""

    def __init__(self, module: SourceModule, source: ParsedModule | str, is_own: _IsOwn) -> None:
        self.module = module
        self.taken: set[TopLevelStatement] = set()
        self._digest = source if isinstance(source, str) else ""
        self.statements = source.statements if isinstance(source, ParsedModule) else ()
        self.binding: dict[str, list[TopLevelStatement]] = {}
        for one in self.statements:
            for name in one.binds:
                self.binding.setdefault(name, []).append(one)
        self.binds = self.binding.keys()
        self._is_own = is_own

    def is_carried_out(self, one: TopLevelStatement) -> bool:
        """Whether importing the module runs the statement for its side effects.

        A decorator of the package itself may register the decorated object.
        """
        return one.runs or any(self._is_ours(name) for name in one.decorators)

    def content(self) -> object:
        """The text of the collected statements, or the digest of a file that is not source."""
        taken = [one for one in self.statements if one in self.taken]
        named = sorted(one.text for one in taken if one.kind != "other")
        return [self._digest, named, [one.text for one in taken if one.kind == "other"]]

    def _is_ours(self, name: str) -> bool:
        found = self.binding.get(name, ())
        return any(
            one.kind != "import" or self._is_own(self.module, one.imports[0]) for one in found
        )


def _source(module: SourceModule, basis: SourceSnapshot) -> ParsedModule | str:
    """The source of a module, or a digest of its file if that is not source."""
    if module.file is None:
        return ""
    basis.path(module.file)
    try:
        found = parsed(module.file) if module.file.suffix == ".py" else None
        if found is not None:
            return found
        basis.certain = False
        return content_digest(module.file)
    except OSError:
        return "unreadable"


_FORMAT: Final = 1
_MOST_CACHED: Final = 512
_CACHE: dict[tuple[Path | str, str], tuple[SourceSnapshot, str]] = {}
"""Digests by source and name, with a snapshot to check that they are still valid."""
_Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda


def function_digest(source: Path | str, name: str) -> str | None:
    """The digest of the function `name` of a module, or of a file that was loaded by itself.

    None where there is none, or where a version covers the code: in the standard library and in
    weft.
    """
    cached = _CACHE.get((source, name))
    if cached is not None and cached[0].holds():
        return cached[1]
    basis = SourceSnapshot()
    found = _found(source, basis)
    if found is None:
        return None
    package, module = found
    reach = ReachableCode(package)
    reach.name(module, name)
    digest = _hashed(reach.content())
    if basis.certain:
        if len(_CACHE) >= _MOST_CACHED:
            _CACHE.clear()
        _CACHE[source, name] = basis, digest
    return digest


def object_digest(function: Callable[..., Any]) -> str | None:
    """The digest of a function object; None where no file contains its source."""
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
    reach = ReachableCode(package)
    texts = [_closure(reach, module, chain) for chain in nested]
    return _hashed([texts, reach.content()]) if texts else None


def _closure(reach: ReachableCode, module: SourceModule, chain: Sequence[_Scope]) -> Sequence[str]:
    """The source of a nested function with the enclosing code it uses; collects the rest."""
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
    """The nodes of `function`, each after its enclosing ones; for lambdas all in its line."""
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
    """The function inside methods, partial applications and decorators with `__wrapped__`."""
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
    """The origin of a function: a file that was loaded by itself, or a module name."""
    module = sys.modules.get(function.__module__)
    file = getattr(module, "__file__", None)
    if module is None or file is None or not Path(file).is_file():
        return None
    name = module.__name__ if module.__spec__ is None else module.__spec__.name
    if name == "__main__" or is_of_file(name):
        return Path(file)
    return str(name)


def _found(source: Path | str, basis: SourceSnapshot) -> tuple[SourcePackage, SourceModule] | None:
    if isinstance(source, Path):
        if not source.is_file():
            return None
        package = SourcePackage("", source.parent, basis)
        return package, SourceModule(source.stem, source, is_package=False)
    around = package_of(source, basis)
    module = None if around is None else around.find(source)
    return None if around is None or module is None else (around, module)


def _hashed(content: object) -> str:
    return hashlib.sha256(json.dumps([_FORMAT, content]).encode()).hexdigest()
