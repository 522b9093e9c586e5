"""The code of tools as a package under a digest: packed where weft runs, unpacked on workers."""

from __future__ import annotations

import io
import os
import shutil
import site
import stat
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any, Final

from pydantic_core import to_json

from weft.agents.tools import Isolation, Tool
from weft.agents.tools.module import find, is_file, path_of
from weft.core.errors import BuildError, PlacementError, ToolNotFound
from weft.core.values import Effect

MAX_CODE_BYTES: Final = 32 * 1024 * 1024
MAX_CODE_FILES: Final = 5_000
_FOLDER: Final = "files"
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
_NOT_CODE: Final = frozenset({"__pycache__", "node_modules", "site-packages"})
_MISSING: Final = "keep it in this process with `on: local`"


@dataclass(frozen=True)
class ToolRef:
    """A tool as a worker finds it: `path` as of `path_of`, in the package's folder for files.

    `version`: the digest of its code here, which the worker's must equal.
    """

    name: str
    path: str
    version: str
    effect: str
    isolation: Mapping[str, Any] | None = None

    @staticmethod
    def of(given: Mapping[str, Any]) -> ToolRef:
        """From JSON. Raises: `TypeError` for other keys."""
        return ToolRef(**given)

    @cached_property
    def key(self) -> str:
        """A text that differs for different tools."""
        return to_json(asdict(self)).decode()


@dataclass(frozen=True, slots=True)
class PackedTool:
    """A tool and the folder or package its code is in; `root` None: it is installed."""

    ref: ToolRef
    root: Path | None
    inside: str = ""


def packed_tool(tool: Tool[..., Any]) -> PackedTool:
    """Where a worker finds `tool`. Raises: `PlacementError` for what it cannot import."""
    name = tool.spec.name
    if tool.is_declared:
        raise PlacementError(f"{name} is made from a schema, so no worker has it", hint=_MISSING)
    try:
        path = path_of(tool.function)
    except BuildError as error:
        message = f"{name} cannot run on a cluster: {error.message}"
        raise PlacementError(message, hint=_MISSING) from error
    isolation = None if tool.isolation is None else asdict(tool.isolation)
    source, _, function = path.rpartition(":")
    version, effect = tool.spec.version or "", tool.spec.effect
    if is_file(source):
        file = Path(source)
        ref = ToolRef(name, f"{_FOLDER}/{file.name}:{function}", version, effect, isolation)
        return PackedTool(ref, file.parent, _FOLDER)
    ref = ToolRef(name, path, version, effect, isolation)
    return PackedTool(ref, _own_package(source), source.partition(".")[0])


def _own_package(module: str) -> Path | None:
    """The folder or file of the top-level package of `module`, unless it is installed."""
    top = module.partition(".")[0]
    if top in sys.stdlib_module_names or top == "weft":
        return None
    loaded = sys.modules.get(top)
    places = [*getattr(loaded, "__path__", ()), getattr(loaded, "__file__", None)]
    place = next((Path(each).resolve() for each in places if each), None)
    if place is None or any(place.is_relative_to(folder) for folder in _installed()):
        return None
    return place


def _installed() -> Iterator[Path]:
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    for name in names:
        yield Path(sysconfig.get_path(name)).resolve()
    yield Path(site.getusersitepackages()).resolve()


def packed(root: Path, inside: str) -> bytes:
    """The Python files below `root` (or the file `root`) as a ZIP archive, below `inside`.

    Equal files give equal bytes. Hidden folders, caches and virtual environments are left out.

    Raises: `PlacementError` beyond `MAX_CODE_FILES` or `MAX_CODE_BYTES`.
    """
    files, states, total = [], [], 0
    for file, name in _files(root, inside):
        state = file.stat()
        files.append((file, name))
        states.append((name, state.st_mtime_ns, state.st_size, state.st_ino))
        total += state.st_size
        if len(files) > MAX_CODE_FILES or total > MAX_CODE_BYTES:
            raise PlacementError(
                f"there are too many Python files in {root}",
                hint=f"at most {MAX_CODE_FILES:,} files of {MAX_CODE_BYTES:,} bytes: give the "
                "tools a folder of their own",
            )
    known = _PACKED.get(root)
    if known is None or known[0] != states:
        known = states, _archive(files)
        if len(_PACKED) >= _MOST_PACKED:
            _PACKED.clear()
        _PACKED[root] = known
    return known[1]


_PACKED: Final[dict[Path, tuple[list[tuple[str, int, int, int]], bytes]]] = {}
_MOST_PACKED: Final = 8


def _archive(files: list[tuple[Path, str]]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for file, name in files:
            entry = zipfile.ZipInfo(name, _EPOCH)
            archive.writestr(entry, file.read_bytes(), zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def _files(root: Path, inside: str) -> Iterator[tuple[Path, str]]:
    if root.is_file():
        yield root, root.name
        return
    for folder, folders, names in os.walk(root):
        here = Path(folder)
        folders[:] = sorted(each for each in folders if _is_code(here / each))
        for name in sorted(names):
            if name.endswith(".py") and not (here / name).is_symlink():
                yield here / name, str(PurePosixPath(inside, (here / name).relative_to(root)))


def _is_code(folder: Path) -> bool:
    hidden = folder.name.startswith(".") or folder.name in _NOT_CODE
    return not hidden and not (folder / "pyvenv.cfg").exists()


class ShippedCode:
    """A package of code, importable in this process. One for a process; empty: nothing shipped."""

    def __init__(self, archive: bytes) -> None:
        self._folder = Path()
        if archive:
            self._folder = unpacked(archive)
            sys.path.insert(0, str(self._folder))

    def tool(self, ref: ToolRef) -> Tool[..., Any]:
        """The tool, imported. Raises: `ToolNotFound`, `PlacementError`, `BuildError`."""
        source, _, name = ref.path.rpartition(":")
        where = f"{self._folder / source}:{name}" if is_file(source) else ref.path
        try:
            found = find(where)
        except AttributeError:
            raise ToolNotFound(f"{source} has no {name} on the worker") from None
        tool = found if isinstance(found, Tool) else Tool(found)
        if ref.version and tool.spec.version and tool.spec.version != ref.version:
            raise PlacementError(
                f"{ref.name} is another version on the worker",
                hint="install the same packages on the nodes as here",
            )
        isolation = None if ref.isolation is None else Isolation(**_fields(ref.isolation))
        effect: Effect = ref.effect  # type: ignore[assignment]
        return tool.declared(isolation=isolation, effect=effect).named(ref.name)


def _fields(isolation: Mapping[str, Any]) -> dict[str, Any]:
    return {**isolation, "env": tuple(isolation.get("env", ()))}


def unpacked(archive: bytes) -> Path:
    """The folder with the files of `archive`: one for each content, in a folder of the user alone.

    Raises: `PlacementError` for an archive that `packed` did not write.
    """
    parent = Path(tempfile.gettempdir(), f"weft-code-{os.getuid()}")
    parent.mkdir(mode=0o700, exist_ok=True)
    state = parent.lstat()
    if not stat.S_ISDIR(state.st_mode) or state.st_uid != os.getuid() or state.st_mode & 0o077:
        raise PlacementError(f"{parent} belongs to somebody else", hint="set TMPDIR on the node")
    folder = parent / sha256(archive).hexdigest()
    if not folder.is_dir():
        partial = Path(tempfile.mkdtemp(dir=parent))
        _extract(archive, partial)
        with suppress(OSError):  # another process was faster
            partial.rename(folder)
        shutil.rmtree(partial, ignore_errors=True)
    return folder


def _extract(archive: bytes, folder: Path) -> None:
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            entries = opened.infolist()
            names = [PurePosixPath(each.filename) for each in entries]
            escapes = any(name.is_absolute() or ".." in name.parts for name in names)
            size = sum(each.file_size for each in entries)
            if escapes or size > MAX_CODE_BYTES or len(entries) > MAX_CODE_FILES:
                raise PlacementError("the package of the tools is damaged")
            opened.extractall(folder)
    except (zipfile.BadZipFile, OSError) as error:
        raise PlacementError(f"the package of the tools is damaged: {error}") from error
