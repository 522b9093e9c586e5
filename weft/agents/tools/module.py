"""Loads modules by name or by file. A file is loaded once, under a unique name.

Two files called tools.py do not conflict: neither in `sys.modules` nor on `sys.path`. A file may
import those in its folder relatively: the folder is a package with a unique name.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.machinery
import importlib.util
import inspect
import operator
import sys
import sysconfig
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from weft.agents.tools.code.sources import FILE_PREFIX, is_of_file
from weft.core.errors import BuildError, ToolNotFound

_NOT_THEIRS: Final = (
    "<frozen",
    str(Path(__file__).parent),
    *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")),
)
_loading = threading.RLock()


def is_file(source: str) -> bool:
    """Whether `source` is a Python file, not a module's dotted name."""
    return source.endswith(".py") or "/" in source or "\\" in source


def load_named(name: str) -> ModuleType:
    """The module `name`, imported now if it has not been.

    Raises: `ToolNotFound` when there is none, `BuildError` when its own code fails.
    """
    if not all(part.isidentifier() for part in name.split(".")):
        raise BuildError(f"{name!r} is not the name of a module", hint="write package.module:name")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise ToolNotFound(
                f"there is no module {error.name!r}",
                hint="install it, run from its folder, or give a file: ./tools.py:name",
            ) from error
        raise _failed(name, error) from error
    except BuildError:  # from a tool in it, with its place
        raise
    except (Exception, SystemExit) as error:
        raise _failed(name, error) from error


def load_file(path: Path) -> ModuleType:
    """The module in the file `path` (absolute, resolved), loaded now if it has not been.

    Raises: `ToolNotFound` when there is no such file, `BuildError` when its own code fails.
    """
    if not path.is_file():
        raise ToolNotFound(f"there is no file {path}")
    with _loading:
        name = f"{_folder_package(path.parent)}.{_module_name(path.stem)}"
        loaded = sys.modules.get(name)
        return loaded if loaded is not None else _execute(name, path)


def _folder_package(folder: Path) -> str:
    """The package for the files in `folder`; runs no `__init__.py`."""
    name = FILE_PREFIX + _digest(str(folder))
    if name not in sys.modules:
        spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [str(folder)]
        sys.modules[name] = importlib.util.module_from_spec(spec)
    return name


def _module_name(stem: str) -> str:
    return stem if stem.isidentifier() else f"file_{_digest(stem)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _execute(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise BuildError(f"{path} is not a Python file", hint="its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # before it runs: dataclasses and pydantic look up their module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, (BuildError, KeyboardInterrupt)):
            raise
        raise _failed(path.name, error, path.parent) from error
    return module


def _failed(what: str, error: BaseException, folder: Path | None = None) -> BuildError:
    hint = None
    if isinstance(error, ModuleNotFoundError):
        hint = "install it"
        top = (error.name or "").partition(".")[0]
        if folder is not None and top.isidentifier() and (folder / f"{top}.py").is_file():
            hint = f"{top}.py lies beside it: write `from .{top} import ...`"
    message = f"{type(error).__name__}: {error}"
    return BuildError(f"{what} cannot be imported: {_place(error)}{message}", hint=hint)


def _place(error: BaseException) -> str:
    """The position in the user's code that raised `error`, as "file:line: "."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}: "
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if not frame.filename.startswith(_NOT_THEIRS)]
    return f"{theirs[-1].filename}:{theirs[-1].lineno}: " if theirs else ""


def find(path: str) -> Any:
    """The object at an import path from `path_of`.

    Raises: what loading its module raises, and `AttributeError`.
    """
    source, _, name = path.rpartition(":")
    module = load_file(Path(source)) if is_file(source) else load_named(source)
    return operator.attrgetter(name)(module)


def path_of(function: Callable[..., Any]) -> str:
    """An import path of `function` for another process: "module:name" or "file.py:name".

    Raises: `BuildError` when there is none.
    """
    name = getattr(function, "__qualname__", "<unnamed>")
    module = sys.modules.get(function.__module__)
    if "<" in name or inspect.ismethod(function) or module is None:
        raise BuildError(
            f"{name} cannot be imported by another process",
            hint="isolation needs a function at the top level of a module or a file",
        )
    if module.__name__ != "__main__" and not is_of_file(module.__name__):
        return f"{module.__name__}:{name}"
    file = getattr(module, "__file__", None)
    if file is None:
        raise BuildError(f"{name} is in no file", hint="isolation needs a function in a file")
    return f"{Path(file).resolve()}:{name}"
