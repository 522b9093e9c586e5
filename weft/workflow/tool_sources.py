"""Tools from wherever somebody names them: functions, Python files, modules, workflow files.

Knows what each tool would be called in a workflow file, so that a plan over them can be saved.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

from weft.agents.tools import Tool, Toolbox, resolve
from weft.agents.tools.joined import JoinedTools
from weft.agents.tools.module import is_file, load_file, load_named
from weft.core.errors import BuildError, ToolNotFound
from weft.core.ports import ToolRunner
from weft.workflow.imports import build_error

Toolish = Tool[..., Any] | ToolRunner | str | Path
"""A tool, a runner of tools, `./tools.py`, `./tools.py:name`, `package.module[:name]`."""


class ToolSources:
    """All tools of `sources` behind one runner. Importing a file runs it: it is trusted.

    `declared` maps the names of tools that have an import path to it; `files` are theirs.
    Raises: `BuildError`, `DuplicateName`.
    """

    def __init__(self, sources: Iterable[Toolish]) -> None:
        self.declared: dict[str, tuple[Path | None, str]] = {}
        self._toolbox = Toolbox()
        self._runners: list[ToolRunner] = []
        for source in sources:
            try:
                self._take(source)
            except ToolNotFound as error:
                raise build_error(error) from error
        runners = [self._toolbox, *self._runners] if self._toolbox.names else self._runners
        self.runner: ToolRunner = (
            runners[0] if len(runners) == 1 else JoinedTools(*(runners or [self._toolbox]))
        )

    async def __aenter__(self) -> ToolSources:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Nothing is open: runners belong to whoever gave them."""

    def paths(self, folder: Path) -> Mapping[str, str]:
        """How a workflow file in `folder` declares each tool.

        Raises: `BuildError` for a tool that no file there can name.
        """
        found = {}
        for spec in self.runner.specs():
            if spec.name not in self.declared:
                raise BuildError(
                    f"a workflow file cannot name the tool {spec.name}",
                    hint="take it from a Python file: --tools ./tools.py",
                )
            found[spec.name] = _from(folder.resolve(), *self.declared[spec.name])
        return found

    def _take(self, source: Toolish) -> None:
        if isinstance(source, Tool):
            self._toolbox.add(source)
        elif isinstance(source, (str, Path)):
            self._take_path(str(source))
        elif callable(getattr(source, "specs", None)):
            self._runners.append(source)
        else:
            hint = "decorate the function with @weft.tool"
            raise BuildError(f"{source!r} is not a tool", hint=hint)

    def _take_path(self, text: str) -> None:
        where, colon, name = text.rpartition(":")
        if colon and where and name.isidentifier():
            self._declare(resolve(text), *_place(where), name)
            return
        module = load_file(Path(text).resolve()) if is_file(text) else load_named(text)
        found = own_tools(module)
        if not found:
            hint = "decorate its functions with @weft.tool"
            raise ToolNotFound(f"{text} defines no tools", hint=hint)
        for name, tool in found.items():
            self._declare(tool, *_place(text), name)

    def _declare(self, tool: Tool[..., Any], file: Path | None, where: str, name: str) -> None:
        self._toolbox.add(tool)
        self.declared[tool.spec.name] = file, name if file is not None else f"{where}:{name}"


def own_tools(module: ModuleType) -> dict[str, Tool[..., Any]]:
    """The tools that a module defines itself, by variable, in the order it defines them."""
    return {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, Tool) and value.function.__module__ == module.__name__
    }


def _place(where: str) -> tuple[Path | None, str]:
    return (Path(where).resolve() if is_file(where) else None), where


def _from(folder: Path, file: Path | None, name: str) -> str:
    if file is None:
        return name
    if not file.is_relative_to(folder):
        raise BuildError(
            f"{file.name} lies outside the folder of the workflow file",
            hint=f"save the plan beside it, in {file.parent}",
        )
    return f"./{file.relative_to(folder).as_posix()}:{name}"
