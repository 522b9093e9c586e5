"""Kills what a program stands on, while it runs; then compares what happened with what was told."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from evals.cluster.dispatch import ray_of
from evals.engine.rows import Row
from weft.agents.process_tree import VARIABLE, kill_group
from weft.cluster.nodes import ClusterNode, ClusterStarter

NODES: Final = 3
_FREEZE_S: Final = 8.0
_TOOLS: Final = "evals.cluster.programs"


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


class Victims:
    """Everything that may be killed: each method kills one, and repairs what does not by itself."""

    def __init__(self, starter: ClusterStarter, folder: Path, seed: int) -> None:
        self._starter = starter
        self._folder = folder
        self._random = random.Random(seed)
        self.frozen: list[tuple[float, int]] = []
        self.counts: Counter[str] = Counter()
        self.program: subprocess.Popen[bytes] | None = None

    def start_program(self) -> None:
        """Start weft, or start it again."""
        log = (self._folder / "weft.log").open("ab")
        with log:
            self.program = subprocess.Popen(
                [sys.executable, "-m", _TOOLS, str(self._folder)], stderr=log, stdout=log
            )

    def strike(self) -> None:
        """Kill or freeze one thing."""
        kinds: list[Callable[[], bool]] = [
            *[self._worker] * 5,
            *[self._freeze] * 2,
            *[self._bridge] * 2,
            self._weft,
            self._raylet,
        ]
        kind = self._random.choice(kinds)
        if kind():
            self.counts[kind.__name__.removeprefix("_")] += 1

    def thaw(self, *, all_of_them: bool = False) -> None:
        """Let frozen processes go on, when their time has come."""
        now = time.monotonic()
        for until, pid in list(self.frozen):
            if all_of_them or now > until:
                self.frozen.remove((until, pid))
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def _workers(self) -> list[int]:
        found = [pid for pid, name in _processes() if b"ray::WorkerProcess" in name]
        return [pid for pid in found if any(_is_of(pid, node) for node in self._starter.nodes)]

    def _worker(self) -> bool:
        found = self._workers()
        return bool(found) and _kill(self._random.choice(found))

    def _freeze(self) -> bool:
        found = self._workers()
        if not found:
            return False
        pid = self._random.choice(found)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            self.frozen.append((time.monotonic() + _FREEZE_S, pid))
        return True

    def _bridge(self) -> bool:
        found = [pid for pid, name in _processes() if b"weft.cluster.bridge" in name]
        found = [pid for pid in found if self.program and _parent(pid) == self.program.pid]
        return bool(found) and _kill(found[0])

    def _weft(self) -> bool:
        if self.program is None or self.program.poll() is not None:
            return False
        self.program.kill()
        self.program.wait()
        self.start_program()
        return True

    def _raylet(self) -> bool:
        nodes = [node for node in self._starter.nodes[1:] if node.is_alive]
        if len(nodes) < NODES:
            return False
        node = self._random.choice(nodes)
        found = [
            pid for pid, name in _processes() if b"raylet/raylet" in name and _is_of(pid, node)
        ]
        killed = bool(found) and _kill(found[0])
        kill_group(node.pid, node.mark)
        self._starter.nodes.remove(node)
        self._starter.node()
        return killed


def chaos_rows(starter: ClusterStarter, chaos: Chaos, seed: int = 7) -> Iterator[Row]:
    """Run the programs under kills, and say what was lost, doubled, or unknown and not told."""
    with tempfile.TemporaryDirectory(prefix="weft-chaos-") as name:
        folder = Path(name)
        ray = ray_of(starter.cluster())
        given = {"address": ray.address, "content": str(ray.content)}
        about = {
            "ray": {**given, "token_file": str(ray.token_file)},
            **{key: getattr(chaos, key) for key in ("programs", "pure", "booked", "charged")},
        }
        (folder / "about.json").write_text(json.dumps(about), "utf-8")
        victims = Victims(starter, folder, seed)
        began = time.monotonic()
        victims.start_program()
        try:
            _torment(victims, chaos, began)
        finally:
            victims.thaw(all_of_them=True)
            if victims.program is not None:
                victims.program.kill()
                victims.program.wait()
        wall = time.monotonic() - began
        found = verdict(folder, chaos)
        log = (folder / "weft.log").read_text("utf-8", "replace")
        if log.strip():
            print(log[-2_000:], file=sys.stderr)
    for metric in ("lost", "doubled", "unknown_untold", "unknown_told", "unended", "failed"):
        yield Row("chaos", "weft_ray", metric, found[metric], "nodes")
    yield Row("chaos", "weft_ray", "programs", chaos.programs, "programs")
    yield Row("chaos", "weft_ray", "nodes", chaos.nodes, "nodes")
    yield Row("chaos", "weft_ray", "kills", sum(victims.counts.values()), "kills")
    for kind, count in sorted(victims.counts.items()):
        yield Row("chaos", "weft_ray", f"kills_{kind}", count, "kills")
    yield Row("chaos", "weft_ray", "wall_s", wall, "s")


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


def _processes() -> Iterator[tuple[int, bytes]]:
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            yield int(place.name), (place / "cmdline").read_bytes()


def _is_of(pid: int, node: ClusterNode) -> bool:
    with suppress(OSError):
        return f"{VARIABLE}={node.mark}".encode() in Path(f"/proc/{pid}/environ").read_bytes()
    return False


def _parent(pid: int) -> int:
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[1])
    return 0


def _kill(pid: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
        return True
    return False
