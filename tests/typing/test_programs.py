"""The programs that type checkers accept also run."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

import pytest

from tests.typing.good import builders, runs

PROGRAMS = [
    function
    for module in (builders, runs)
    for name, function in inspect.getmembers(module, inspect.isfunction)
    if function.__module__ == module.__name__
    and not inspect.signature(function).parameters
    and name != "typed_flow"
]


def test_there_are_twenty() -> None:
    assert len(PROGRAMS) >= 20


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_it_runs(program: Callable[[], Any]) -> None:
    if inspect.iscoroutinefunction(program):
        asyncio.run(program())
    else:
        program()
