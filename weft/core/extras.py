"""Optional packages: an import that fails names the extra of weft that installs the package.

The extras are read from weft's own metadata.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import requires
from typing import Final

from weft.core.errors import BuildError, WeftError

_REQUIREMENT: Final = re.compile(r"([\w.-]+).*?\bextra\s*==\s*['\"]([\w.-]+)['\"]")
_OTHER_NAMES: Final = {
    "pil": "pillow",
    "weft_weights": "weft-weights",
    "google": "google-genai",
    "google.genai": "google-genai",
}
"""Distributions whose names differ from their modules'."""


@contextmanager
def optional_packages(purpose: str, kind: type[WeftError] = BuildError) -> Iterator[None]:
    """A context for the optional imports of `purpose`. Raises: `kind` for a missing package."""
    try:
        yield
    except ImportError as error:
        raise missing(error, purpose, kind) from error


def missing(error: ImportError, purpose: str, kind: type[WeftError] = BuildError) -> WeftError:
    """The error for a person. Raises: `error` itself where one of weft's own modules is missing."""
    package = str(error.name).partition(".")[0]
    if package == "weft":
        raise error
    if not isinstance(error, ModuleNotFoundError):
        return kind(f"a package for {purpose} does not load: {error}", hint=advice(package))
    return kind(
        f"the package {distribution_of(package)} is missing for {purpose}", hint=advice(package)
    )


def advice(package: str) -> str:
    """How to install the package of that top-level module: by the smallest extra that has it."""
    extra = extra_with(package)
    return f"pip install 'weft[{extra}]'" if extra else f"pip install {distribution_of(package)}"


def distribution_of(package: str) -> str:
    """The name under which pip installs that top-level module."""
    return _OTHER_NAMES.get(package.lower(), package)


def extra_with(package: str) -> str | None:
    """The smallest extra of weft with a distribution of that module; None where none has it."""
    module = _normal(package)
    wanted = _OTHER_NAMES.get(module, module)
    matches = [_REQUIREMENT.match(each) for each in requires("weft") or ()]
    pairs = [match.groups() for match in matches if match]
    sizes = Counter(extra for _, extra in pairs)
    having = [extra for name, extra in pairs if f"{_normal(name)}-".startswith(f"{wanted}-")]
    return min(having, key=lambda extra: sizes[extra], default=None)


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
