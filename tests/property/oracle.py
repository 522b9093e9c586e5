"""What a random program comes to, computed by plain recursion over its data.

Knows the rules of `weft.engine.graph.node` from its docstrings, and nothing of how they are carried
out: no events, no queue, no tasks. Every node has its own time line; with unlimited workers nothing
else is needed. Programs must not tie, hang, stream or limit widths, and no join may cancel the rest
but those of growths.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any, Literal

from tests.property.program import RETRY_S, Act, Spec, joined_value, round_scope, value_of
from weft.core.events import Status
from weft.engine import MISSING, Join

ANSWER = 7
Wave = tuple[int, ...]


@dataclass(frozen=True)
class End:
    """How and when a node ended. `failed`: with a failure; `born_s`: when it was appended.

    `wave` orders the ends of one moment: a node whose end was decided by another's comes after it.
    """

    status: Status
    at_s: float
    value: Any = None
    failed: bool = False
    retryable: bool = False
    attempts: int = 0
    via: str = ""
    born_s: float = 0.0
    wave: Wave = ()

    @property
    def ok(self) -> bool:
        return self.status == "succeeded"

    @property
    def moment(self) -> tuple[float, int, Wave]:
        return self.at_s, len(self.wave), self.wave


Ends = dict[str, End]


@dataclass(frozen=True)
class Attempt:
    """What one attempt came to: a value, nothing on purpose, or a failure; and what it appended."""

    kind: Literal["value", "skip", "failure"]
    at_s: float
    value: Any = None
    retryable: bool = False
    inner: Ends | None = None


@dataclass(frozen=True)
class Decision:
    """A join: the branches that count, or why there are none."""

    kind: Literal["ready", "skip", "upstream", "unsatisfied"]
    at_s: float
    winners: tuple[str, ...] = ()
    retryable: bool = False
    wave: Wave = ()


def evaluate(specs: Sequence[Spec], born_s: float = 0.0, scope: str = "") -> Ends:
    """The end of every node of one scope, and of everything inside."""
    own: Ends = {}
    everything: Ends = {}
    for spec in specs:
        node = f"{scope}/{spec.name}" if scope else spec.name
        own[spec.name], inner = _evaluate(spec, node, born_s, own)
        assert own[spec.name].at_s < inf
        everything |= inner
        everything[node] = own[spec.name]
    return everything


def _evaluate(
    spec: Spec, node: str, born_s: float, siblings: Mapping[str, End]
) -> tuple[End, Ends]:
    branches = {source: siblings[source] for source in spec.sources}
    decision = _decide_inputs(spec.join, branches, born_s)
    wave = (*decision.wave, len(siblings))
    end = End("skipped", decision.at_s, born_s=born_s, wave=wave)
    if decision.kind == "skip":
        return end, {}
    if decision.kind == "upstream":
        return replace(end, failed=True), {}
    if decision.kind == "unsatisfied":
        return _give_up(spec, node, replace(end, status="failed", retryable=decision.retryable), {})
    inputs: dict[str, Any] = {}
    for source in decision.winners:
        value = branches[source].value if branches[source].ok else spec.join.default
        if value is not MISSING:
            inputs[source] = value
    return _attempts(spec, node, replace(end, wave=()), inputs)


def _attempts(spec: Spec, node: str, end: End, inputs: Mapping[str, Any]) -> tuple[End, Ends]:
    now, inner = end.at_s, Ends()
    for number in range(1, spec.attempts + 1):
        attempt = _timed(spec, _attempt(spec.act(number), node, number, now, inputs), now)
        inner |= attempt.inner or {}
        end = replace(end, attempts=number, at_s=attempt.at_s)
        if attempt.kind == "value":
            return replace(end, status="succeeded", value=attempt.value), inner
        if attempt.kind == "skip":
            return replace(end, status="skipped"), inner
        end = replace(end, status="failed", retryable=attempt.retryable)
        if not attempt.retryable:
            break
        now = attempt.at_s + min(RETRY_S * 2 ** (number - 1), 30.0)
    return _give_up(spec, node, end, inner)


def _give_up(spec: Spec, node: str, end: End, inner: Ends) -> tuple[End, Ends]:
    """The last attempt has failed."""
    end = replace(end, status="failed", failed=True)
    if spec.fallback is not None:
        place = f"{node}/{spec.fallback.name}"
        stand_in, below = _evaluate(spec.fallback, place, end.at_s, {})
        inner = inner | below | {place: stand_in}
        end = replace(end, at_s=stand_in.at_s, via="fallback", wave=())
        if stand_in.ok:
            return replace(end, status="succeeded", value=stand_in.value), inner
        if not stand_in.failed:
            return replace(end, status="skipped", failed=False, via=""), inner
        end = replace(end, retryable=stand_in.retryable)
    if spec.default is not MISSING:
        return replace(end, status="succeeded", value=spec.default, via="default"), inner
    return end, inner


def _timed(spec: Spec, attempt: Attempt, start_s: float) -> Attempt:
    limit_s = inf if spec.timeout_s is None else start_s + spec.timeout_s
    if attempt.at_s < limit_s:
        return attempt
    return Attempt("failure", limit_s, retryable=True, inner=_cut(attempt.inner or {}, limit_s))


def _cut(ends: Ends, at_s: float) -> Ends:
    """What is left of a scope that is cancelled at a moment: what had ended, and cancelled rest."""
    return {
        node: end if end.at_s < at_s else _cancelled(end, at_s)
        for node, end in ends.items()
        if end.born_s < at_s
    }


def _cancelled(end: End, at_s: float) -> End:
    return End("cancelled", at_s, failed=True, born_s=end.born_s, attempts=-1)


def _attempt(act: Act, node: str, number: int, now: float, inputs: Mapping[str, Any]) -> Attempt:
    at_s = now + act.seconds
    scope = node if number == 1 else f"{node}~{number}"
    match act.deed:
        case "value":
            return Attempt("value", at_s, value_of(node, number, inputs))
        case "ask":
            return Attempt("value", at_s, joined_value(node, number, [ANSWER]))
        case "skip":
            return Attempt("skip", at_s)
        case "broken" | "cancelled":
            return Attempt("failure", at_s)
        case "retryable":
            return Attempt("failure", at_s, retryable=True)
        case "hang":
            return Attempt("failure", inf)
        case "append":
            inner = evaluate(act.children, at_s, scope)
            done_s = at_s + (act.then_s or 0)
            return Attempt(
                "value", _last([done_s], inner), value_of(node, number, inputs), inner=inner
            )
        case "grow":
            return _grown(act, node, number, scope, at_s)
        case "await":
            raise ValueError("what waits for nodes elsewhere is not evaluated here")


def _grown(act: Act, node: str, number: int, scope: str, now: float) -> Attempt:
    inner = Ends()
    for turn in range(1, act.rounds + 1):
        place = round_scope(scope, turn)
        ends = evaluate(act.children, now, place)
        names = [f"{place}/{act.children[index].name}" for index in act.results]
        results = {name: ends[name] for name in names}
        decision = _decide(act.join, results, now)
        early = act.join.mode in ("any", "quorum", "first_valid")
        inner |= _keep_deciding(ends, decision.at_s) if early else ends
        if decision.kind == "skip":
            return Attempt("skip", decision.at_s, inner=inner)
        if decision.kind == "unsatisfied":
            at_s = _last([decision.at_s], inner)
            return Attempt("failure", at_s, retryable=decision.retryable, inner=inner)
        values = [
            results[name].value if results[name].ok else act.join.default
            for name in decision.winners
        ]
        values = [value for value in values if value is not MISSING]
        if act.then_s is None:
            return Attempt("value", _last([decision.at_s], inner), values, inner=inner)
        now = decision.at_s + act.then_s
    value = joined_value(node, number, values)
    return Attempt("value", _last([now], inner), value, inner=inner)


def _keep_deciding(ends: Ends, at_s: float) -> Ends:
    """Like `_cut`, but what ended at the very moment decided it, and so had ended before."""
    return {
        node: end if end.at_s <= at_s else _cancelled(end, at_s)
        for node, end in ends.items()
        if end.born_s <= at_s
    }


def _last(moments: Iterable[float], inner: Ends) -> float:
    return max([*moments, *(end.at_s for end in inner.values())])


def _decide_inputs(join: Join, branches: Mapping[str, End], born_s: float) -> Decision:
    if join.mode != "all":
        return _decide(join, branches, born_s)
    in_time = sorted(branches.values(), key=lambda end: end.moment)
    lost = next((end for end in in_time if end.failed and not end.ok), None)
    if lost is not None:
        return Decision("upstream", lost.at_s, wave=lost.wave)
    if any(not end.ok for end in in_time):
        return Decision("skip", in_time[-1].at_s, wave=in_time[-1].wave)
    return Decision("ready", _last([born_s], dict(branches)), tuple(branches))


def _decide(join: Join, branches: Mapping[str, End], born_s: float) -> Decision:
    """Count the branches in the order in which they end."""
    won: list[str] = []
    bad: list[tuple[str, bool]] = []
    out: list[str] = []
    now, wave = born_s, Wave()
    needed = {"quorum": join.k, "any": 1, "first_valid": 1}.get(join.mode)
    for name, end in sorted(branches.items(), key=lambda item: item[1].moment):
        now, wave = end.at_s, end.wave
        if end.ok and _valid(join, end.value):
            won.append(name)
        elif end.ok or end.failed:
            bad.append((name, end.retryable and not end.ok))
        else:
            out.append(name)
        left = len(branches) - len(won) - len(bad) - len(out)
        if needed is not None and (len(won) >= needed or len(won) + left < needed):
            break
    lost = {name for name, _ in bad}
    if needed is None:
        satisfied = join.mode == "best_effort" or not bad
    else:
        satisfied = len(won) >= needed
        lost = set()
    if satisfied:
        return Decision("ready", now, tuple(n for n in branches if n in won or n in lost))
    if join.mode != "all" and out and not won and not bad:
        return Decision("skip", now, wave=wave)
    again = any(retryable for _, retryable in bad)
    return Decision("unsatisfied", now, retryable=again, wave=wave)


def _valid(join: Join, value: Any) -> bool:
    if join.mode != "first_valid" or join.valid is None:
        return True
    try:
        return bool(join.valid(value))
    except TypeError:
        return False
