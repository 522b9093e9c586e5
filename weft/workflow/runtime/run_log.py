"""Runs in Python's `logging`: `weft.runs` and `weft.nodes`, without prompts, values and answers."""

from __future__ import annotations

import logging
from typing import Final

from weft.core.errors import Failure
from weft.core.events import (
    BreakerChanged,
    Event,
    Listener,
    NodeFinished,
    NodeRerouted,
    NodeRetrying,
    NodeStarted,
    RunFinished,
    RunResumed,
    RunStarted,
    Subscription,
)
from weft.core.loggers import logger

_RUNS: Final = logger("runs")
_NODES: Final = logger("nodes")
_RARE: Final = frozenset(
    (RunStarted, RunResumed, RunFinished, NodeRetrying, NodeRerouted, BreakerChanged)
)
_ALL: Final = _RARE | {NodeStarted, NodeFinished}


def run_log(run: str) -> Listener | None:
    """A listener that logs the run; None where nobody wants its lines.

    Level INFO: beginning and end of the run, failures, retries, fallbacks,
    circuit breakers. DEBUG: every node, and
    the messages of failures, which may quote what models and tools wrote.
    """
    if not (_RUNS.isEnabledFor(logging.INFO) or _NODES.isEnabledFor(logging.INFO)):
        return None
    return Subscription(_ALL, lambda event: _log(run, event))


def _log(run: str, event: Event) -> None:
    match event:
        case RunStarted():
            _RUNS.info("%s begins: %s, %d nodes", run, event.flow, len(event.nodes))
        case RunResumed():
            _RUNS.info("%s is resumed: part %d", run, event.part)
        case RunFinished():
            tokens = event.usage.tokens
            _RUNS.info("%s %s in %.3f s, %d tokens", run, event.status, event.at_s, tokens)
        case NodeRetrying():
            why = _named(event.failure)
            _NODES.info("%s: %s is tried again in %g s: %s", run, event.node, event.delay_s, why)
        case NodeRerouted():
            _NODES.info("%s: %s runs for %s: %s", run, event.to, event.node, _named(event.failure))
        case BreakerChanged(kind=kind, name=name, state=state):
            _NODES.info("%s: the circuit breaker of the %s %s is %s", run, kind, name, state)
        case NodeStarted():
            _NODES.debug("%s: %s starts, attempt %d", run, event.node, event.attempt)
        case NodeFinished(node=node, outcome=outcome) if outcome.status == "failed":
            assert outcome.failure is not None
            _NODES.info("%s: %s failed: %s", run, node, _named(outcome.failure))
        case NodeFinished(node=node, outcome=outcome):
            _NODES.debug("%s: %s %s", run, node, outcome.status)


def _named(failure: Failure) -> str:
    return str(failure) if _NODES.isEnabledFor(logging.DEBUG) else failure.error
