"""Predictions for a recorded run, from changes written as text. Only reads the journal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from weft.core.errors import InputError
from weft.core.ids import RunId
from weft.core.ports.journal import Journal
from weft.durability import simulate as simulation
from weft.durability.simulate import (
    Advice,
    Change,
    Fault,
    Prediction,
    RecordedRun,
    Scale,
    recording,
)
from weft.durability.simulate.script import WorkStep
from weft.engine.analysis.critical_path import family
from weft.workflow.document.spec.defects import choice_hint
from weft.workflow.history.run_history import find_run
from weft.workflow.runtime.journals import open_journal

_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "": 1.0}
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|)\Z")
_FACTOR: Final = re.compile(r"x(\d+(?:\.\d+)?)\Z")


def simulate(
    run: str = "last",
    *,
    workers: int | None = None,
    limits: Sequence[str] = (),
    latencies: Sequence[str] = (),
    speeds: Sequence[str] = (),
    faults: Sequence[str] = (),
    seed: int = 0,
    seeds: int = 1,
    journal: Journal | str | Path | None = None,
) -> Prediction:
    """Predict how long a recorded run takes under other conditions. Calls no model and no tool.

    run         its id, the first characters of it, or `last`
    workers     nodes that run at once; 0: no limit
    limits      `CLASS=8`: slots of a model or a tool; 0: no limit
    latencies   `PATTERN=x0.5` or `PATTERN=300ms`; a pattern is `tool.NAME`, `model.NAME`,
                `node.NAME` or `own.NAME`, with `*` and `?`
    speeds      `x2` for all models, or `NAME=x2`
    faults      `NAME:0.1`: a tool, a model or a node, and the share of its attempts that fail
    seeds       simulated runs, from `seed` on; all but the first draw each time from those that the
                same code took
    journal     a journal, its path or address; None: the default journal

    Raises: `InputError` for a text that cannot be read or names what the run does not have,
    `UnknownReference`, `StoreError`, `RunError`.
    """
    recorded = _recorded(run, journal)
    change = parse_change(
        recorded,
        workers=workers,
        limits=limits,
        latencies=latencies,
        speeds=speeds,
        faults=faults,
        seed=seed,
    )
    return simulation.simulate(recorded, change, seeds=seeds)


def advise(
    run: str = "last", *, count: int = 3, journal: Journal | str | Path | None = None
) -> tuple[Advice, ...]:
    """The changes that would shorten a recorded run most, at most `count`, the best first.

    Each has its `words`, the predicted `wall_s`, and `saves`, a share of the recorded time. `run`
    and `journal`: see `simulate`. Raises: `UnknownReference`, `StoreError`, `RunError`.
    """
    return simulation.advise(_recorded(run, journal), Change(), count)


def _recorded(run: str, journal: Journal | str | Path | None) -> RecordedRun:
    if journal is None or isinstance(journal, (str, Path)):
        with closing(open_journal(journal, make=journal is None, to_read=True)) as opened:
            return recording_of(opened, find_run(opened, run))
    return recording_of(journal, find_run(journal, run))


def recording_of(journal: Journal, run: RunId) -> RecordedRun:
    """The recording of a run, ready to be scheduled again. Raises: `StoreError`, `RunError`."""
    return recording(numbered.record for numbered in journal.records(run))


def parse_change(
    found: RecordedRun,
    *,
    workers: int | None = None,
    limits: Sequence[str] = (),
    latencies: Sequence[str] = (),
    speeds: Sequence[str] = (),
    faults: Sequence[str] = (),
    seed: int = 0,
) -> Change:
    """The change that these texts describe.

    limits      `CLASS=8`; 0 is no limit
    latencies   `PATTERN=x0.5` or `PATTERN=300ms`; a pattern is `tool.NAME`, `model.NAME`,
                `node.NAME` or `own.NAME`, with `*` and `?`
    speeds      `x2` for all models, or `NAME=x2`; NAME may be `model.NAME`
    faults      `NAME:0.1`: a tool, a model or a node, and how often an attempt fails

    Raises: `InputError` for a text that is none of these, or names what the run does not have.
    """
    names = _RunNames(found)
    scales = [_scale(text, names) for text in latencies] + [_speed(text, names) for text in speeds]
    change = Change(workers, scales=tuple(scales), seed=seed)
    change = replace(change, limits=dict(_limit(text, names) for text in limits))
    return replace(change, faults=tuple(_fault(text, names) for text in faults))


class _RunNames:
    """What a run has: names of tools and models, families of nodes, classes of slots."""

    def __init__(self, found: RecordedRun) -> None:
        self.families = sorted({family(node) for node in found.every})
        self.calls = sorted(
            {
                f"{stretch.kind}.{stretch.name}"
                for script in found.every.values()
                for attempt in script.attempts
                for step in attempt.steps
                if isinstance(step, WorkStep)
                for stretch in step.stretches
                if stretch.kind != "own"
            }
        )
        own = [script.info.resource for script in found.every.values()]
        self.classes = sorted({name for name in (*found.limits, *own) if name})

    @property
    def patterns(self) -> list[str]:
        nodes = [f"{kind}.{name}" for name in self.families for kind in ("node", "own")]
        return [*self.calls, *nodes]

    @property
    def models(self) -> list[str]:
        return [name for name in self.calls if name.startswith("model.")]

    @property
    def faulty(self) -> list[str]:
        return [*self.families, *(name.partition(".")[2] for name in self.calls)]

    def check(self, pattern: str, among: Iterable[str], text: str, what: str) -> None:
        """Raise `InputError` when `pattern` names nothing of the run."""
        known = list(among)
        literal = pattern.replace("[", "[[]")
        if not any(name == pattern or fnmatchcase(name, literal) for name in known):
            shown = ", ".join(known[:8]) or "none"
            hint = choice_hint(pattern, known) or f"it has {shown}"
            raise InputError(f"{text!r}: the run has no {what} called {pattern!r}", hint=hint)


def _scale(text: str, names: _RunNames) -> Scale:
    pattern, _, value = text.rpartition("=")
    if (factor := _FACTOR.match(value)) is not None and pattern:
        found = Scale(pattern, float(factor[1]))
    elif (duration := _DURATION.match(value)) is not None and pattern:
        found = Scale(pattern, seconds=float(duration[1]) * _UNITS[duration[2]])
    else:
        hint = "such as tool.search=x0.5 or model.small=300ms"
        raise InputError(f"{text!r} is no latency", hint=hint)
    names.check(pattern, names.patterns, text, "tool, model or node")
    return found


def _speed(text: str, names: _RunNames) -> Scale:
    name, _, value = text.rpartition("=")
    factor = _FACTOR.match(value)
    if factor is None or float(factor[1]) == 0:
        raise InputError(f"{text!r} is no speed", hint="such as x2, or small=x1.5")
    pattern = f"model.{name.removeprefix('model.') or '*'}"
    names.check(pattern, names.models, text, "model")
    return Scale(pattern, 1 / float(factor[1]))


def _limit(text: str, names: _RunNames) -> tuple[str, int]:
    name, _, value = text.rpartition("=")
    if not name or not value.isdecimal():
        raise InputError(f"{text!r} is no limit", hint="such as gpu=8; 0 is no limit")
    names.check(name, names.classes, text, "class of slots")
    return name, int(value)


def _fault(text: str, names: _RunNames) -> Fault:
    name, _, value = text.rpartition(":")
    try:
        probability = float(value)
    except ValueError:
        probability = -1.0
    if not name or not 0 <= probability <= 1:
        hint = "such as search:0.1, a name and a probability from 0 to 1"
        raise InputError(f"{text!r} is no fault", hint=hint)
    names.check(name, names.faulty, text, "tool, model or node")
    return Fault(name, probability)
