"""Tools by import path: "package.module:name", or "./tools.py:name" beside a workflow file.

Importing runs the module's code, so a path is as trusted as the file that holds it. What comes back
is only ever an object made by `@weft.tool`: a path cannot reach `os:system`.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

from weft.agents.tools.function import Tool
from weft.agents.tools.module import is_file, load_file, load_named
from weft.agents.tools.suggestion import suggestion
from weft.core.errors import BuildError, ToolNotFound


def resolve(path: str, base: Path | None = None) -> Tool[..., Any]:
    """The tool at an import path; imports its module now if nobody has yet.

    A file is looked up in the folder `base` (default: the working directory) and must lie inside
    it, symbolic links followed.

    Raises: `ToolNotFound` when there is no such module, file or name (with what was meant);
    `BuildError` when the module's own code fails (says in which line), when the object is no tool,
    or when the path leaves `base`.
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
