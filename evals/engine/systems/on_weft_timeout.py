"""weft as in `on_weft`, and a timeout on every node too: one timer set and cleared for each."""

from __future__ import annotations

from dataclasses import replace

from evals.engine.cases import Case, Tally
from evals.engine.systems import Program, on_weft

_POLICY = replace(on_weft.POLICY, timeout_s=60.0)


def build(case: Case, tally: Tally) -> Program:
    """The graph of `on_weft` under a policy that bounds every attempt."""
    return on_weft.build(case, tally, _POLICY)
