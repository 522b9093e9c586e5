"""The same comparison with other speeds, thoughts and tools: where do the claims stop holding?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from evals.engine.rows import Row
from evals.planning.orchestration.cases import CASES, chains
from evals.planning.orchestration.measuring import in_virtual_time
from evals.planning.orchestration.rows import speedup_rows
from evals.planning.orchestration.setting import SPEEDS, Setting, Speed
from evals.planning.orchestration.task import Task

SYSTEMS: Final = ("compiler", "react_text", "react", "llmcompiler_loop")
SWEPT: Final = ("movie", "parallelqa", "hotpotqa")
TOKEN_MS: Final = (2, 5, 10, 20, 40, 80)
PAUSES: Final = (0, 40, 80, 160, 320)
_SUFFIXES: Final = tuple(
    f"speedup_to_{system}{least}" for system in SYSTEMS[1:] for least in ("", "_least")
)
THINKING: Final = ("plan thinks before each step as react does", "plan thinks it all beforehand")
"""The planner writes as many tokens of thought as `react_text`: as it goes, or before the plan."""


def settings(case: str, usual: Setting) -> Iterator[tuple[str, Setting]]:
    """Each variation with its name; all but one thing is as usual."""
    style, first_s = usual.style, usual.speed.first_token_s
    for per_ms in TOKEN_MS:
        yield f"{per_ms} ms a token", replace(usual, speed=Speed(first_s, per_ms / 1000))
    if case not in SWEPT:
        return
    for name in ("fast", "remote", "slow"):
        yield f"{name} model", replace(usual, speed=SPEEDS[name])
    for first in (0.2, 0.8):
        speed = Speed(first, usual.speed.per_token_s)
        yield f"{first:g} s to the first token", replace(usual, speed=speed)
    for tokens in (0, 40, 80):
        thoughts = replace(style, calls=tokens)
        yield f"{tokens} tokens of thought before calls", replace(usual, style=thoughts)
    for tokens in (0, 100):
        yield f"answer after {tokens} tokens", replace(usual, style=replace(style, answer=tokens))
    before, after = style.published
    published = replace(style, plan=before, join=after)
    yield "plan with published thoughts", replace(usual, style=published)
    yield "plan after 80 tokens of thought", replace(usual, style=replace(style, plan=80))
    for name, ahead in zip(THINKING, (False, True), strict=True):
        thoughts = replace(style, steps=style.calls, ahead=ahead)
        yield name, replace(usual, style=thoughts)
    for scale in (0.1, 0.3, 3.0, 10.0):
        yield f"tools {scale:g} x", replace(usual, scale=scale)


def sweep_rows(case: str, count: int) -> list[Row]:
    """The compiler's speed-ups on `count` tasks in every variation. Raises: `Skipped`."""
    tasks = CASES[case].some(count)
    rows = []
    for name, setting in settings(case, CASES[case].usual):
        rows += _speedups(f"{case}, {name}", tasks, setting)
    return rows


def pause_rows(count: int) -> list[Row]:
    """The streaming case with pauses of other lengths in the plan, at two speeds."""
    rows = []
    for pause in PAUSES:
        tasks = chains.drawn(pause)[:count]
        for name in ("fast", "medium"):
            setting = Setting(SPEEDS[name], CASES["streaming"].style)
            rows += _speedups(f"streaming, {name} model, pause of {pause} tokens", tasks, setting)
    return rows


def _speedups(case: str, tasks: Sequence[Task], setting: Setting) -> list[Row]:
    rows = speedup_rows(case, in_virtual_time(SYSTEMS, tasks, setting))
    return [row for row in rows if row.system == SYSTEMS[0] and row.metric in _SUFFIXES]


def per_token(case: str) -> Sequence[str]:
    """The names under which the cases of the sweep over token times stand in rows."""
    return [f"{case}, {per_ms} ms a token" for per_ms in TOKEN_MS]
