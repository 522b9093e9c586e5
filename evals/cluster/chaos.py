"""Kills what a program stands on, while it runs; then compares what happened with what was told."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from evals.cluster.dispatch import ray_of
from evals.cluster.stores import REDIS, database, has_redis, redis_server
from evals.cluster.victims import NODES, Victims
from evals.engine.rows import Row
from weft.cluster.nodes import ClusterStarter


@dataclass(frozen=True, slots=True)
class Chaos:
    """How much: programs, nodes of each by effect, and kills; `pause_s` between two kills."""

    programs: int
    pure: int
    booked: int
    charged: int
    kills: int
    pause_s: float
    limit_s: float

    @property
    def nodes(self) -> int:
        """Nodes of all programs that call a tool."""
        return self.programs * (self.pure + self.booked + self.charged)


FULL: Final = Chaos(1_000, 60, 30, 10, 320, 1.0, 7_200.0)
QUICK: Final = Chaos(150, 60, 30, 10, 40, 1.5, 300.0)


def chaos_rows(chaos: Chaos, seed: int = 7) -> Iterator[Row]:
    """Run the programs under kills, and say what was lost, doubled, or unknown and not told.

    One half of the programs runs on a cluster whose control store has its state in Redis.
    """
    found: Counter[str] = Counter()
    kills: Counter[str] = Counter()
    kept = [False, True] if has_redis() else [False]
    began = time.monotonic()
    half = replace(chaos, programs=chaos.programs // len(kept), kills=chaos.kills // len(kept))
    for at, keeps_state in enumerate(kept):
        with tempfile.TemporaryDirectory(prefix="weft-chaos-") as name, ExitStack() as opened:
            folder = Path(name)
            if keeps_state:
                opened.enter_context(redis_server(folder))
            address = opened.enter_context(database())
            kills += _suffer(half, folder, seed + at, address, keeps_state=keeps_state)
            found += verdict(folder, half)
    wall = time.monotonic() - began
    for metric in ("lost", "doubled", "unknown_untold", "unknown_told", "unended", "failed"):
        yield Row("chaos", "weft_ray", metric, found[metric], "nodes")
    programs = half.programs * len(kept)
    yield Row("chaos", "weft_ray", "programs", programs, "programs")
    yield Row("chaos", "weft_ray", "nodes", half.nodes * len(kept), "nodes")
    yield Row("chaos", "weft_ray", "kills", sum(kills.values()), "kills")
    for kind, count in sorted(kills.items()):
        yield Row("chaos", "weft_ray", f"kills_{kind}", count, "kills")
    yield Row("chaos", "weft_ray", "wall_s", wall, "s")


def _suffer(
    chaos: Chaos, folder: Path, seed: int, address: str | None, *, keeps_state: bool
) -> Counter[str]:
    """Run the programs on a cluster of their own; the kills, by kind."""
    starter = ClusterStarter(passed=[REDIS] if keeps_state else [])
    try:
        starter.head()
        for _ in range(NODES):
            starter.node()
        ray = ray_of(starter.cluster())
        given = {"address": ray.address, "content": str(ray.content)}
        about = {
            "ray": {**given, "token_file": str(ray.token_file)},
            "journal": address or str(folder / "journal.sqlite"),
            **{key: getattr(chaos, key) for key in ("programs", "pure", "booked", "charged")},
        }
        (folder / "about.json").write_text(json.dumps(about), "utf-8")
        victims = Victims(starter, folder, seed, address, keeps_state=keeps_state)
        victims.start_program()
        try:
            _torment(victims, chaos, time.monotonic())
        finally:
            victims.thaw(all_of_them=True)
            if victims.program is not None:
                victims.program.kill()
                victims.program.wait()
    finally:
        starter.cluster().stop()
    log = (folder / "weft.log").read_text("utf-8", "replace")
    if log.strip():
        print(log[-2_000:], file=sys.stderr)
    return victims.counts


def _torment(victims: Victims, chaos: Chaos, began: float) -> None:
    kills = 0
    while time.monotonic() - began < chaos.limit_s:
        assert victims.program is not None
        try:
            victims.program.wait(chaos.pause_s)
        except subprocess.TimeoutExpired:
            pass
        else:
            if victims.program.returncode == 0:
                return
            victims.start_program()
        victims.thaw()
        if kills < chaos.kills:
            victims.strike()
            kills = sum(victims.counts.values())


def verdict(folder: Path, chaos: Chaos) -> Counter[str]:
    """Compare the ledger with what the programs say.

    lost: a success without its effect or its value. doubled: an effect that happened twice.
    unknown_untold: a call that was not repeated and failed, whose effect is there, without being
    told as unknown. unended: programs without an end. failed: other nodes that failed.
    """
    found: Counter[str] = Counter()
    acts: Counter[str] = Counter()
    keys: dict[str, set[str]] = {}
    ledger = folder / "ledger"
    for line in ledger.read_text("ascii").splitlines() if ledger.exists() else ():
        kind, item, key = line.split()
        acts[f"{kind} {item}"] += 1
        keys.setdefault(f"{kind} {item}", set()).add(key)
    charges = (count for act, count in acts.items() if act.startswith("charge "))
    found["doubled"] += sum(count > 1 for count in charges)
    found["doubled"] += sum(len(each) > 1 for each in keys.values())  # other keys: not recognised
    for program in range(chaos.programs):
        file = folder / f"{program}.json"
        if not file.exists():
            found["unended"] += 1
            continue
        told = json.loads(file.read_text("utf-8"))
        squares = [n * n for n in range(chaos.pure)]
        found["lost"] += told["outputs"].get("squares") != squares
        for kind, group in (("book", "books"), ("charge", "charges")):
            count = chaos.booked if kind == "book" else chaos.charged
            for n in range(count):
                act = acts[f"{kind} {program}.{n}"]
                found[_judged(kind, _outcome(told["outcomes"], group, n), act)] += 1
    return found


def _outcome(outcomes: dict[str, list[str]], group: str, item: int) -> list[str]:
    names = (name for name in outcomes if name.startswith(f"{group}/{item}/"))
    wanted = next(names, None) or next(
        (name for name in outcomes if name.startswith(f"{group}[{item}]/")), None
    )
    return ["missing", ""] if wanted is None else outcomes[wanted]


def _judged(kind: str, outcome: list[str], acts: int) -> str:
    status, error = outcome
    if status == "succeeded":
        return "sound" if acts else "lost"
    if kind == "charge" and error == "EffectUnknown":
        return "unknown_told"
    return "unknown_untold" if kind == "charge" and acts else "failed"
