"""Tools from functions, Python files, modules and workflow files.

Also gives their declarations for a workflow file, so that a plan over them can be saved.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FunctionType, ModuleType, TracebackType
from typing import Any

from weft.agents.tools import Tool, Toolbox, resolve
from weft.agents.tools import tool as make_tool
from weft.agents.tools.module import is_file, load_file, load_named
from weft.agents.tools.toolbox import JoinedTools
from weft.core.errors import BuildError, ToolNotFound
from weft.core.ids import is_name
from weft.core.ports import ToolRunner
from weft.core.values import ToolSpec
from weft.workflow.document.loader import load_tools
from weft.workflow.document.spec.fields import RESERVED
from weft.workflow.runtime.tools.flow_tools import FlowTools
from weft.workflow.runtime.tools.functions import build_error

ToolLike = Tool[..., Any] | FunctionType | ToolRunner | str | Path
"""A tool, a typed function, a runner of tools, `./tools.py`, `./tools.py:name`,
`package.module[:name]`, or a workflow file with its declared tools: `./flow.yaml`."""

_WORKFLOWS = (".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class ToolDeclarations:
    """The section `tools` of a workflow file. `called`: the names in its nodes of tools that models
    know by other names."""

    tools: Mapping[str, str | Mapping[str, Any]] = field(default_factory=dict)
    called: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolSection:
    """All tools as a workflow in `folder` declares them: functions, references, servers.

    `specs`: those that are known before a server is started.
    """

    folder: Path
    tools: Mapping[str, str | Mapping[str, object] | Callable[..., Any]]
    specs: tuple[ToolSpec, ...] = ()


class ToolSources:
    """All tools of `sources` behind one runner, inside an `async with`.

    Importing a file runs it: it is trusted. Servers of workflow files are started on entry and
    stopped on exit. Raises: `BuildError`, `DuplicateName`; on entry also `ToolError`.
    """

    def __init__(self, sources: Iterable[ToolLike]) -> None:
        self._files: dict[str, tuple[Path | None, str]] = {}
        self._toolbox = Toolbox()
        self._given: list[ToolRunner] = []
        self._flows: list[FlowTools] = []
        for source in sources:
            try:
                self._take(source)
            except ToolNotFound as error:
                raise build_error(error) from error

    async def __aenter__(self) -> ToolSources:
        try:
            for flow in self._flows:
                await flow.start()
            return self
        except BaseException:
            await self._close()
            raise

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._close()

    @property
    def runner(self) -> ToolRunner:
        """All tools. Raises: `DuplicateName`."""
        return JoinedTools(self._toolbox, *self._given, *self._flows)

    def section(self, beside: Path | None = None) -> ToolSection | None:
        """The section `tools` of a workflow over all tools; None where no single one is possible.

        Its folder has the file `beside` in it, too.

        That is with tool runners, with workflows of several folders or outside the Python files'
        folder, and for two tools of one name. Raises: `DuplicateName`.
        """
        runner = self.runner
        folder = self._folder(beside)
        if self._given or folder is None:
            return None
        tools: dict[str, Any] = {}
        for spec in self._toolbox.specs():
            file = self._files.get(spec.name)
            tools[spec.name] = (
                self._toolbox.get(spec.name) if file is None else _from(folder, *file)
            )
        for flow in self._flows:
            for key in flow.unit.document.tools:
                if key in tools:
                    return None
                tools[key] = _declared(flow, key, folder)
        if any(not is_name(name) or name in RESERVED for name in tools):
            return None
        return ToolSection(folder, tools, runner.specs())

    def _folder(self, beside: Path | None = None) -> Path | None:
        """The folder of a workflow over all tools: that of the workflow files, if any."""
        files = [file.parent for file, _ in self._files.values() if file is not None]
        files += [] if beside is None else [beside.resolve().parent]
        folders = {flow.unit.folder.resolve() for flow in self._flows}
        if not folders:
            return Path(os.path.commonpath(files)) if files else Path.cwd().resolve()
        folder, *others = folders
        return folder if not others and all(file.is_relative_to(folder) for file in files) else None

    def declarations(self, folder: Path, tools: Iterable[str] | None = None) -> ToolDeclarations:
        """The declarations of `tools`, or of all, in a workflow file in `folder`.

        Raises: `BuildError` for a tool that no file there can name.
        """
        if tools is None:
            for flow in self._flows:
                _check_beside(flow, next(iter(flow.unit.document.tools), ""), folder.resolve())
        names = tools if tools is not None else [spec.name for spec in self.runner.specs()]
        section: dict[str, str | Mapping[str, Any]] = {}
        called: dict[str, str] = {}
        for name in names:
            owner, written = self._flow_with(name)
            if owner is not None:
                called[name] = written
                key = written.partition(".")[0]
                section[key] = _declared(owner, key, folder.resolve())
            elif name in self._files:
                section[name] = _from(folder.resolve(), *self._files[name])
            else:
                raise BuildError(
                    f"a workflow file cannot name the tool {name}",
                    hint="take it from a Python file: --tools ./tools.py",
                )
        return ToolDeclarations(section, called)

    def _flow_with(self, tool: str) -> tuple[FlowTools | None, str]:
        """The workflow that declares a tool, and the tool's name in its nodes."""
        for flow in self._flows:
            if (name := flow.name_of(tool)) is not None:
                return flow, name
        return None, ""

    async def _close(self) -> None:
        for flow in self._flows:
            await flow.aclose()

    def _take(self, source: ToolLike) -> None:
        if isinstance(source, Tool):
            self._toolbox.add(source)
        elif isinstance(source, FunctionType):
            self._toolbox.add(make_tool(source))
        elif isinstance(source, (str, Path)):
            self._take_path(str(source))
        elif callable(getattr(source, "specs", None)):
            self._given.append(source)
        else:
            hint = "decorate the function with @weft.tool"
            raise BuildError(f"{source!r} is not a tool", hint=hint)

    def _take_path(self, text: str) -> None:
        where, colon, name = text.rpartition(":")
        if text.endswith(_WORKFLOWS):
            self._flows.append(FlowTools(load_tools(Path(text))))
        elif colon and where and name.isidentifier():
            self._enter(resolve(text), *_place(where), name)
        else:
            module = load_file(Path(text).resolve()) if is_file(text) else load_named(text)
            tools = own_tools(module)
            if not tools:
                hint = "decorate its functions with @weft.tool"
                raise ToolNotFound(f"{text} defines no tools", hint=hint)
            for name, tool in tools.items():
                self._enter(tool, *_place(text), name)

    def _enter(self, tool: Tool[..., Any], file: Path | None, where: str, name: str) -> None:
        self._toolbox.add(tool)
        self._files[tool.spec.name] = file, name if file is not None else f"{where}:{name}"


def own_tools(module: ModuleType) -> dict[str, Tool[..., Any]]:
    """The tools that a module defines itself, by variable, in the order of definition.

    A tool that is made from a schema counts as the module's own: its function may be imported.
    """
    return {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, Tool)
        and (value.is_declared or value.function.__module__ == module.__name__)
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


def _declared(flow: FlowTools, key: str, folder: Path) -> Mapping[str, Any]:
    _check_beside(flow, key, folder)
    declared = flow.unit.document.tools[key]
    return declared.model_dump(mode="json", by_alias=True, exclude_unset=True)


def _check_beside(flow: FlowTools, key: str, folder: Path) -> None:
    if folder != flow.unit.folder.resolve():
        raise BuildError(
            f"the tool {key} is declared in another folder",
            hint=f"save the plan beside the workflow, in {flow.unit.folder}",
        )
