"""Registries of tools: Python functions by name or import path, and several runners as one.

Importing runs the module's code, so a path is as trusted as its file. Only objects made by
`@weft.tool` are returned: a path cannot reach `os:system`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

from weft.agents.tools.approval import ApprovalRule
from weft.agents.tools.function import Tool
from weft.agents.tools.invocation import invocation, invoke_batch
from weft.agents.tools.module import is_file, load_file, load_named
from weft.core.breaker import Breaker
from weft.core.errors import BuildError, DuplicateName, ToolNotFound, WeftError
from weft.core.ports import BatchRunner, BoundTool, ToolRunner
from weft.core.suggestion import suggestion
from weft.core.values import ToolSpec
from weft.engine import Retry


@runtime_checkable
class ToolResources(Protocol):
    """A tool runner that knows the resources of its tools."""

    def resource(self, name: str) -> str | None:
        """The resource whose slot a call of the tool takes, or None."""


def resource_of(tools: ToolRunner, name: str) -> str | None:
    """The resource of the tool `name`, if `tools` knows it."""
    return tools.resource(name) if isinstance(tools, ToolResources) else None


class ToolSettings(NamedTuple):
    """The resource whose slot a call of a tool takes, and the retry that the tool declares."""

    resource: str | None = None
    retry: Retry | None = None


def settings_of(tools: ToolRunner, name: str) -> ToolSettings:
    """The settings of the tool `name`, as far as `tools` knows them."""
    retry = getattr(tools, "retry", None)
    return ToolSettings(resource_of(tools, name), None if retry is None else retry(name))


def breaker_of(tools: ToolRunner, name: str) -> Breaker | None:
    """The circuit breaker that the tool `name` declares, if `tools` knows it."""
    breaker = getattr(tools, "breaker", None)
    found: Breaker | None = None if breaker is None else breaker(name)
    return found


def resolve(path: str, base: Path | None = None) -> Tool[..., Any]:
    """The tool at an import path; imports its module if needed.

    A file is looked up in the folder `base` (default: the working directory) and must be inside it,
    after following symbolic links.

    Raises: `ToolNotFound` for a missing module, file or name (with a suggestion); `BuildError` when
    the module's own code fails (with the line), when the object is no tool, or when the path leaves
    `base`.
    """
    source, colon, name = path.rpartition(":")
    if not colon or not source or not name.isidentifier():
        raise BuildError(
            f"{path!r} is not the path of a tool",
            hint="write package.module:name or ./file.py:name",
        )
    module = (
        load_file(_within(source, base or Path.cwd())) if is_file(source) else load_named(source)
    )
    return _tool(module, name, source)


def _within(source: str, base: Path) -> Path:
    folder = base.resolve()
    try:
        file = (folder / source).resolve()
    except (OSError, RuntimeError, ValueError) as error:  # loops of links, NUL in a name
        raise BuildError(f"{source!r} is not the path of a file: {error}") from error
    if Path(source).is_absolute() or not file.is_relative_to(folder):
        raise BuildError(
            f"{source} lies outside {folder}",
            hint="keep tool files beside the workflow, or install them as a package",
        )
    return file


def _tool(module: ModuleType, name: str, source: str) -> Tool[..., Any]:
    found = getattr(module, name, None)
    if isinstance(found, Tool):
        return found
    if found is None:
        tools = [key for key, value in vars(module).items() if isinstance(value, Tool)]
        raise ToolNotFound(f"{source} has no tool {name!r}", hint=suggestion(name, tools))
    raise BuildError(f"{source}:{name} is not a tool", hint="decorate the function with @weft.tool")


MAX_RESULT_BYTES: Final = 16 * 1024 * 1024


class Toolbox:
    """Implements `ToolRunner` over tools, and over import paths that are imported on first use.

    Also `ToolBinder`, and `BatchRunner` for tools with a batch form. A result is plain data of at
    most `max_result_bytes`, measured as JSON.
    """

    def __init__(self, *tools: Tool[..., Any], max_result_bytes: int = MAX_RESULT_BYTES) -> None:
        self._tools: dict[str, Tool[..., Any] | Callable[[], Tool[..., Any]]] = {}
        self._bound: dict[str, BoundTool] = {}
        self._max_result_bytes = max_result_bytes
        for tool in tools:
            self.add(tool)

    def add(self, tool: Tool[..., Any], name: str | None = None) -> None:
        """Register `tool`, under `name` or its own.

        Raises: `DuplicateName`; `BuildError` when it is not a tool, or the name is no identifier.
        """
        if not isinstance(tool, Tool):
            raise BuildError(
                f"{tool!r} is not a tool", hint="decorate the function with @weft.tool"
            )
        named = tool if name is None else tool.named(name)
        self._enter(named.spec.name, named)

    def declare(self, name: str, path: str, base: Path | None = None) -> None:
        """Register the tool at an import path (see `resolve`) as `name`, without importing it.

        Raises: `DuplicateName`.
        """
        self._enter(name, partial(resolve, path, base))

    def _enter(self, name: str, tool: Tool[..., Any] | Callable[[], Tool[..., Any]]) -> None:
        if name in self._tools:
            raise DuplicateName(f"there are two tools {name!r}", hint="give one another name")
        self._tools[name] = tool

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all tools, in the order of registration."""
        return tuple(self._tools)

    def get(self, name: str) -> Tool[..., Any]:
        """The tool `name`; imports it if it was only declared.

        Raises: `ToolNotFound`, with a suggestion; what `resolve` raises.
        """
        found = self._tools.get(name)
        if found is None:
            raise ToolNotFound(f"there is no tool {name!r}", hint=suggestion(name, self._tools))
        if isinstance(found, Tool):
            return found
        self._tools[name] = tool = found().named(name)
        return tool

    def resource(self, name: str) -> str | None:
        """The resource whose slot a call of the tool takes, or None; imports it if needed."""
        return self.get(name).resource if name in self._tools else None

    def retry(self, name: str) -> Retry | None:
        """The retry that the tool declares, or None; imports it if needed."""
        return self.get(name).retry if name in self._tools else None

    def approval(self, name: str) -> ApprovalRule | None:
        """Whether calls of the tool need a person's approval; None: it does not say."""
        return self.get(name).approve if name in self._tools else None

    def breaker(self, name: str) -> Breaker | None:
        """The circuit breaker that the tool declares, or None."""
        return self.get(name).breaker if name in self._tools else None

    def specs(self) -> tuple[ToolSpec, ...]:
        """The specs of all tools, in the order of registration; imports declared ones.

        Raises: what `resolve` raises.
        """
        return tuple(self.get(name).spec for name in self._tools)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        return await self.bound(name)(arguments)

    def bound(self, name: str) -> BoundTool:
        found = self._bound.get(name)
        if found is None:
            found = self._bound[name] = invocation(self.get(name), self._max_result_bytes)
        return found

    async def call_batch(
        self, name: str, calls: Sequence[Mapping[str, Any]]
    ) -> Sequence[Any | WeftError]:
        return await invoke_batch(self.get(name), calls, self._max_result_bytes)


class JoinedTools:
    """Implements `ToolRunner` and `BatchRunner` over `runners`, which the caller closes.

    Raises: `DuplicateName` for equal names in two of them, here and in `specs`.
    """

    def __init__(self, *runners: ToolRunner) -> None:
        self._runners = runners
        self._owners: dict[str, ToolRunner] = {}
        self.specs()

    def specs(self) -> tuple[ToolSpec, ...]:
        found: dict[str, ToolSpec] = {}
        owners: dict[str, ToolRunner] = {}
        for runner in self._runners:
            for spec in runner.specs():
                if spec.name in found:
                    hint = "give one another name, or its server a prefix"
                    raise DuplicateName(f"there are two tools {spec.name!r}", hint=hint)
                found[spec.name] = spec
                owners[spec.name] = runner
        self._owners = owners
        return tuple(found.values())

    def resource(self, name: str) -> str | None:
        """The resource whose slot a call of the tool takes, or None."""
        owner = self._owners.get(name)
        return None if owner is None else resource_of(owner, name)

    def retry(self, name: str) -> Retry | None:
        """The retry that the tool declares, or None."""
        owner = self._owners.get(name)
        return None if owner is None else settings_of(owner, name).retry

    def approval(self, name: str) -> ApprovalRule | None:
        """Whether calls of the tool need a person's approval; None: it does not say."""
        owner = self._owners.get(name)
        rule = None if owner is None else getattr(owner, "approval", None)
        found: ApprovalRule | None = None if rule is None else rule(name)
        return found

    def breaker(self, name: str) -> Breaker | None:
        """The circuit breaker that the tool declares, or None."""
        owner = self._owners.get(name)
        return None if owner is None else breaker_of(owner, name)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        return await self._owner(name).call(name, arguments)

    async def call_batch(
        self, name: str, calls: Sequence[Mapping[str, Any]]
    ) -> Sequence[Any | WeftError]:
        owner = self._owner(name)
        if isinstance(owner, BatchRunner):
            return await owner.call_batch(name, calls)
        raise ToolNotFound(f"{name} takes one call at a time", hint="its spec says `batch: 0`")

    def _owner(self, name: str) -> ToolRunner:
        owner = self._owners.get(name)
        if owner is None:
            self.specs()  # a reconnected server may offer new tools
            owner = self._owners.get(name)
        if owner is None:
            raise ToolNotFound(f"there is no tool {name!r}", hint=suggestion(name, self._owners))
        return owner
