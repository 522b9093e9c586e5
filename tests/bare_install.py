"""Runs commands of weft as if nothing but an extra's packages, or none's, were installed.

    python -m tests.bare_install EXTRA < COMMANDS

reads a JSON array of argument lists and writes, for each, `[exit status, stdout, stderr]`. What is
refused is read from the metadata of what is installed. Servers end as soon as they serve.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from importlib import metadata
from importlib.machinery import ModuleSpec
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def closure(project: str, extra: str = "") -> set[str]:
    """The distributions that come with a project and one of its extras, as far as installed."""
    found: set[str] = set()
    todo = [(canonicalize_name(project), frozenset({extra}))]
    done = set()
    while todo:
        name, extras = todo.pop()
        if (name, extras) in done:
            continue
        done.add((name, extras))
        with contextlib.suppress(metadata.PackageNotFoundError):
            needs = [Requirement(text) for text in metadata.requires(name) or ()]
            found.add(name)
            todo += [
                (canonicalize_name(need.name), frozenset({"", *need.extras}))
                for need in needs
                if need.marker is None or any(need.marker.evaluate({"extra": e}) for e in extras)
            ]
    return found


def absent(extra: str = "") -> set[str]:
    """The top-level modules that are here, and would not be."""
    kept = closure("weft", extra)
    modules = {
        **metadata.packages_distributions(),
        "weft_weights": ["weft-weights"],  # of an editable install no module is known
    }
    return {
        module
        for module, distributions in modules.items()
        if kept.isdisjoint(canonicalize_name(name) for name in distributions)
    }


class _Without:
    """A finder that does not find some modules."""

    def __init__(self, finder: Any, refused: set[str]) -> None:
        self._finder = finder
        self._refused = refused

    def find_spec(self, name: str, *rest: Any) -> ModuleSpec | None:
        if name.partition(".")[0] in self._refused:
            return None
        spec: ModuleSpec | None = self._finder.find_spec(name, *rest)
        return spec

    def __getattr__(self, name: str) -> Any:
        return getattr(self._finder, name)


def hide(refused: set[str]) -> None:
    """From now on none of these modules can be imported."""
    for name in [name for name in sys.modules if name.partition(".")[0] in refused]:
        del sys.modules[name]
    sys.meta_path[:] = [_Without(finder, refused) for finder in sys.meta_path]  # type: ignore[misc]


class _Screen(io.StringIO):
    """Whoever prints an address there serves, and is told to end."""

    def write(self, text: str) -> int:
        if text.startswith(("listening on http://", "http://")):
            signal.raise_signal(signal.SIGINT)
        return super().write(text)


def outcomes(commands: Sequence[Sequence[str]]) -> Iterator[tuple[int, str, str]]:
    """Run each in this process."""
    from typer.main import get_command

    from weft.cli.main import app

    program = get_command(app)
    for command in commands:
        code = 0
        with (
            contextlib.redirect_stdout(_Screen()) as out,
            contextlib.redirect_stderr(io.StringIO()) as err,
        ):
            try:
                program(command)
            except SystemExit as ended:
                code = ended.code if isinstance(ended.code, int) else 1
        yield code, out.getvalue(), err.getvalue()


if __name__ == "__main__":
    os._exit = sys.exit  # type: ignore[assignment] # a gateway ends its process
    hide(absent(*sys.argv[1:]))
    json.dump(list(outcomes(json.load(sys.stdin))), sys.stdout)
