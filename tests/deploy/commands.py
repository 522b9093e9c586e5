"""Command lines of weft in files for deployment, checked against the real commands."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import click
import pytest
from typer.main import get_command

from weft.cli.main import app


def check_command(args: Sequence[str], folder: Path) -> None:
    """The command has every option that `args` gives it, and takes the values.

    `folder` stands for the folder of workflows in the container. Skips the test for a command that
    this weft does not have.
    """
    group = cast(click.Group, get_command(app))
    name, *rest = [arg.replace("/srv/weft/workflows", str(folder)) for arg in args]
    if name not in group.list_commands(click.Context(group)):
        pytest.skip(f"this weft has no command {name!r}")
    group.commands[name].make_context(name, rest).close()


def duration_s(args: Sequence[str], option: str) -> int:
    """The seconds that an option gives, such as `30s`."""
    value = args[list(args).index(option) + 1]
    match = re.fullmatch(r"(\d+)s", value)
    assert match is not None, value
    return int(match[1])
