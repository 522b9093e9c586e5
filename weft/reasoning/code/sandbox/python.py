"""How the running Python is run again inside: its command, and the paths that it has to see."""

from __future__ import annotations

import os
import sys
import sysconfig
from functools import cache
from typing import Final

PROGRAM: Final = "main.py"
"""The name of the program's file in its directory."""
ENVIRONMENT: Final = {"PYTHONHASHSEED": "0"}
"""All that a program finds in its environment: the same order of sets in every run."""
_LIBRARIES: Final = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache", "/nix/store")


@cache
def python_command() -> tuple[str, ...]:
    """The command that runs `PROGRAM`: no site packages, no bytecode written, UTF-8."""
    return (os.path.realpath(sys.executable), "-s", "-S", "-P", "-B", "-X", "utf8", PROGRAM)


@cache
def python_paths() -> tuple[str, ...]:
    """The interpreter, its standard library and the system's shared libraries; no site packages."""
    named = sysconfig.get_config_vars("LIBDIR", "LDLIBRARY")
    shared = ["/".join(named)] if all(isinstance(name, str) for name in named) else []
    outside = {"platbase": sys.base_exec_prefix}  # a virtual environment has none of its own
    compiled = sysconfig.get_path("platstdlib", vars=outside)
    return (python_command()[0], sysconfig.get_path("stdlib"), compiled, *shared, *_LIBRARIES)
