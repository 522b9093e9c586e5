"""One attack carried out: what the server answers others meanwhile, and how it ends."""

from __future__ import annotations

import json
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

from evals.security.attacks import Attack
from evals.security.target import Target, target
from evals.security.upstream import upstream
from weft.core.events import HumanAsked
from weft.workflow.runtime.journals import open_journal

_AT_LEAST_S = 1.0
_MOST_TIMES = 100
"""An attack that is over at once is repeated, so that the watcher sees it."""


@dataclass(frozen=True, slots=True)
class Attacked:
    """`status` is the attack's own answer; `ended_s` the time from SIGTERM, sent during a second
    attack, to the end of the process.
    """

    status: int
    latencies_ms: tuple[float, ...]
    ended_s: float
    exit_status: int | None

    @property
    def worst_ms(self) -> float:
        """The longest that `/healthz` took."""
        return max(self.latencies_ms)


def attacked(attack: Attack) -> Attacked:
    """Start the server, attack it, watch it, end it."""
    with (
        tempfile.TemporaryDirectory() as folder,
        upstream() as url,
        target(attack, Path(folder), url) as victim,
    ):
        aimed, body = _aimed(attack, victim)
        latencies: list[float] = []
        status = 0
        with victim.watched(latencies):
            began = time.perf_counter()
            for _ in range(_MOST_TIMES):
                status = _post(victim, aimed, body)
                if time.perf_counter() - began > _AT_LEAST_S:
                    break
        again = threading.Thread(target=_post, args=(victim, aimed, body), daemon=True)
        again.start()
        ended_s = victim.terminate()
        again.join()
        return Attacked(status, tuple(latencies), ended_s, victim.process.returncode)


def _post(victim: Target, aimed: Attack, body: bytes) -> int:
    """The status of the answer; of several clients, one that is not among the expected, if any."""
    with ThreadPoolExecutor(aimed.clients) as clients:
        found = set(clients.map(lambda _: victim.post(aimed, body), range(aimed.clients)))
    return next(iter(found - {*aimed.statuses}), min(found))


def _aimed(attack: Attack, victim: Target) -> tuple[Attack, bytes]:
    """The attack, and what it sends: at the page, an answer to the question that a run asks."""
    body = attack.body()
    if attack.kind != "ui":
        return attack, json.dumps(body).encode()
    assert victim.journal is not None
    journal = open_journal(victim.journal)
    try:
        run = journal.runs()[0].run
        asked = [each for each in journal.records(run) if isinstance(each.record, HumanAsked)]
    finally:
        journal.close()
    path = f"{attack.path}?run={quote(run)}"
    return replace(attack, path=path), json.dumps({**body, "question": asked[0].seq}).encode()
