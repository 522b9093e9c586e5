"""What a function reaches in its package: definitions, by the names that they use.

Names are followed wherever they are written, so rather too much is reached than too little. What is
found by other means (`getattr`, `importlib`, values that a closure has kept) is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from weft.agents.tools.code.modules import Module, Package, ancestors
from weft.agents.tools.code.source_snapshot import SourceSnapshot
from weft.agents.tools.code.statements import (
    STAR,
    Import,
    Parsed,
    Statement,
    content_digest,
    parsed,
)

_IsOwn = Callable[[Module, Import], bool]


class Reach:
    """Collects what is reached in one package; see `content`."""

    def __init__(self, package: Package) -> None:
        self._package = package
        self._modules: dict[str, _Reached] = {}
        self._missing: set[str] = set()

    def content(self) -> object:
        """What was reached, as JSON, in an order that does not depend on the way."""
        modules = {name: reached.content() for name, reached in self._modules.items()}
        return [sorted(modules.items()), sorted(self._missing)]

    def name(self, module: Module, name: str) -> None:
        """Reach what `name` stands for at the top level of `module`."""
        reached = self._reached(module)
        if name in reached.binds:
            self._names(reached, (name,))
        elif (inner := self._package.find(f"{module.name}.{name}")) is not None:
            self.everything(inner)
        else:
            self._take(reached, reached.statements)

    def everything(self, module: Module) -> None:
        """Reach all of a module."""
        reached = self._reached(module)
        self._take(reached, reached.statements)

    def used(self, module: Module, names: Iterable[str], imports: Sequence[Import]) -> None:
        """Reach what code in `module` reaches that uses `names`, and has `imports` in it."""
        reached = self._reached(module)
        self._names(reached, names)
        for one in imports:
            self._imported(module, one)

    def _reached(self, module: Module) -> _Reached:
        found = self._modules.get(module.name)
        if found is None:
            source = _source(module, self._package.basis)
            found = self._modules[module.name] = _Reached(module, source, self._is_own)
            for name in ancestors(module.name):  # they are imported before it
                around = self._package.find(name)
                if around is not None:
                    self._reached(around)
            self._take(found, [one for one in found.statements if found.is_carried_out(one)])
        return found

    def _names(self, reached: _Reached, names: Iterable[str]) -> None:
        found = [one for name in names for one in reached.binding.get(name, ())]
        self._take(reached, found)

    def _take(self, reached: _Reached, found: Iterable[Statement]) -> None:
        waiting = list(found)
        while waiting:
            one = waiting.pop()
            if one in reached.taken:
                continue
            reached.taken.add(one)
            for imported in one.imports:
                self._imported(reached.module, imported)
            for name in one.uses:
                waiting += reached.binding.get(name, ())

    def _imported(self, module: Module, one: Import) -> None:
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

    def _is_own(self, module: Module, one: Import) -> bool:
        return self._package.target(module, one.module, one.level) is not None


class _Reached:
    """A module, and those of its statements that were reached."""

    def __init__(self, module: Module, source: Parsed | str, is_own: _IsOwn) -> None:
        self.module = module
        self.taken: set[Statement] = set()
        self._digest = source if isinstance(source, str) else ""
        self.statements = source.statements if isinstance(source, Parsed) else ()
        self.binding: dict[str, list[Statement]] = {}
        for one in self.statements:
            for name in one.binds:
                self.binding.setdefault(name, []).append(one)
        self.binds = self.binding.keys()
        self._is_own = is_own

    def is_carried_out(self, one: Statement) -> bool:
        """Whether importing the module does it for what it does.

        A decorator of the package itself may register what it decorates.
        """
        return one.runs or any(self._is_ours(name) for name in one.decorators)

    def content(self) -> object:
        """The text of what was reached; the digest of a file that is no source."""
        taken = [one for one in self.statements if one in self.taken]
        named = sorted(one.text for one in taken if one.kind != "other")
        return [self._digest, named, [one.text for one in taken if one.kind == "other"]]

    def _is_ours(self, name: str) -> bool:
        found = self.binding.get(name, ())
        return any(
            one.kind != "import" or self._is_own(self.module, one.imports[0]) for one in found
        )


def _source(module: Module, basis: SourceSnapshot) -> Parsed | str:
    """The source of a module; a digest of its file where that is no source."""
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
