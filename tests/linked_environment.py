"""A fresh virtual environment that has the packages of some distributions, by links to ours.

So it is there in a second, without an index; what is not linked cannot be imported, also not by
processes that the program starts.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from pathlib import Path

from packaging.utils import canonicalize_name

from tests.bare_install import closure

_OWN = {"weft", "weft-weights"}


def make(folder: Path, wheels: Path, extra: str = "", *, weights: bool = True) -> Path:
    """Make the environment and let pip install `weft[extra]` there, from the folder `wheels`.

    `extra` may be several, by comma. pip finds what it needs beside it installed already, or fails:
    there is no index. Without `weights` it does not look at requirements, and installs weft alone.
    Returns its `bin`.
    """
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for name in set().union(*(closure("weft", one) for one in extra.split(","))) - _OWN:
        _link(name, site)
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python")]
    options = ["-q", "--no-index", "--no-compile", "--disable-pip-version-check"]
    options += ["--find-links", str(wheels), *([] if weights else ["--no-deps"])]
    subprocess.run([*pip, "install", *options, f"weft[{extra}]" if extra else "weft"], check=True)
    return folder / "bin"


def _link(distribution: str, site: Path) -> None:
    """Whole folders, but for those that several distributions share (namespace packages)."""
    tops, places = _files()
    for top in tops[distribution]:
        if sum(top in others for others in tops.values()) == 1:
            (site / top).symlink_to(places[distribution] / top)
        else:
            for file in metadata.files(distribution) or ():
                if file.parts[0] == top and "__pycache__" not in file.parts:
                    (site / file).parent.mkdir(parents=True, exist_ok=True)
                    (site / file).symlink_to(places[distribution] / file)


@cache
def _files() -> tuple[Mapping[str, set[str]], Mapping[str, Path]]:
    """Of each distribution: the entries of site-packages that it writes to, and site-packages."""
    tops: dict[str, set[str]] = defaultdict(set)
    places = {}
    for distribution in metadata.distributions():
        name = canonicalize_name(distribution.metadata["Name"])
        if name not in _OWN:
            places[name] = Path(str(distribution.locate_file("")))
            firsts = {file.parts[0] for file in distribution.files or ()}
            tops[name] |= firsts - {"..", "__pycache__"}
    return tops, places
