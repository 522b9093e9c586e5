"""`decode: auto` against every single decoder it may choose, on texts that are known.

A model writes the texts once, plainly. Then every decoder of them is computed: its passes are
exact, their times are those measured of the model here. What `auto` knows when it begins a case
is nothing, what weft comes with, or what all other cases showed (never the case itself).

`python -m evals.speculative.choice CORPUS FILE` writes what weft comes with, from other prompts.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from evals.engine.rows import Lookup, Row
from evals.planning.effort import Skipped
from evals.reasoning.report import Target
from evals.speculative.cases import AGENTS, CASES
from evals.speculative.cases.prompt import Prompt
from evals.speculative.known_text import Replay, Working, replayed
from evals.speculative.served import Served
from evals.speculative.single import Model, plainly
from weft.core.errors import ModelNotFound
from weft.core.ports.clock import SystemClock
from weft.core.values import AUTOREGRESSIVE
from weft.decoding import tensor_file
from weft.decoding.speculative import pass_costs
from weft.decoding.speculative.drafter import SpeculativeMethod
from weft.decoding.speculative.drafters.auto import preset
from weft.decoding.speculative.drafters.auto.history import AcceptanceHistory
from weft.decoding.speculative.drafters.auto.method import Arm, AutoMethod
from weft.decoding.speculative.drafters.ngram import lookup, suffix
from weft.decoding.speculative.pass_costs import PassCosts
from weft.serving.weights import locate
from weft.training import corpus

MODEL: Final = "smollm2-135m-instruct"
PLAIN: Final = "autoregressive"
SINGLES: Final = (PLAIN, "lookup", "suffix")
STATES: Final = ("auto cold", "auto", "auto taught")
"""Knowing nothing, what weft comes with, and what the other cases showed."""
TARGETS: Final = (
    Target("all", "auto", "slowest_case", 0.95),
    Target("agents", "auto", "predicted_ratio", 1.0),
)
_TOKENS: Final = 96
_WHOLE: Final = 256
"""For answers that a grammar holds: one that is cut off is no answer."""
_LEARNT_EVERY: Final = 3
_MEASURED_S: Final = 6.0


@dataclass(frozen=True, slots=True)
class Known:
    """A prompt's tokens, and the plain greedy answer's."""

    prompt: Sequence[int]
    text: Sequence[int]


Texts = Mapping[str, Sequence[Known]]
"""By case."""


def rows(quick: bool) -> list[dict[str, Any]]:
    """The figures of `MODEL`. Raises: `Skipped` in a hurry, and where it is not."""
    if quick:
        raise Skipped("in a hurry: all cases are written first; `auto` shows what is chosen")
    path = _path()
    model = Model(path)
    texts = asyncio.run(written(path, model, lambda case: CASES[case](5)))
    costs = pass_costs.measure(model.network, SystemClock(), _MEASURED_S)
    return [asdict(row) for row in (*_curve_rows(costs), *compared(model, texts, costs))]


async def written(
    path: Path, model: Model, prompts: Callable[[str], Sequence[Prompt]]
) -> dict[str, Sequence[Known]]:
    """What the model answers, plainly, in every case whose prompts are there."""
    texts: dict[str, Sequence[Known]] = {}
    served = Served(path)
    for case in CASES:
        print(f"{case} is written", file=sys.stderr, flush=True)
        try:
            asked = prompts(case)
        except Skipped:
            continue
        most = _TOKENS if all(prompt.free for prompt in asked) else _WHOLE
        answers, _ = await served.together(asked, AUTOREGRESSIVE, most)
        texts[case] = [
            Known(model.encoded(prompt), answer.tokens)
            for prompt, answer in zip(asked, answers, strict=True)
        ]
    await served.close()
    return texts


def compared(model: Model, texts: Texts, costs: PassCosts) -> Iterator[Row]:
    """Times of all decoders, and what choosing lost against knowing the best beforehand."""
    found: dict[str, dict[str, list[Replay]]] = {}
    for case in texts:
        clock = Working()
        found[case] = {
            name: _replays(_single(model, name), texts[case], costs, clock) for name in SINGLES
        }
        for state in STATES:
            history = _history(state, model, {c: t for c, t in texts.items() if c != case}, costs)
            choice = _choice(model, costs, history, clock)
            found[case][state] = _replays(choice, texts[case], costs, clock)
        yield from _case_rows(case, found[case])
    totals = {"agents": [case for case in AGENTS if case in found], "all": list(found)}
    for total, cases in totals.items():
        if cases:
            joined = {
                name: [one for case in cases for one in found[case][name]]
                for name in (*SINGLES, *STATES)
            }
            yield from _case_rows(total, joined)
            yield from _worst_rows(total, {case: found[case] for case in cases})


def learnt(model: Model, texts: Texts, costs: PassCosts) -> AcceptanceHistory:
    """What choosing in all cases shows, in turns, so that no case is the last word."""
    history, clock = AcceptanceHistory(), Working()
    choice = _choice(model, costs, history, clock)
    for turn in range(max(map(len, texts.values()), default=0)):
        for known in (of[turn] for of in texts.values() if turn < len(of)):
            replayed(choice, known.prompt, known.text, costs, clock)
    return history


def table(rows: Sequence[Row]) -> str:
    """How much faster than plain decoding, as computed: decoders down, cases across."""
    figures = Lookup(rows)
    cases = list(dict.fromkeys(row.case for row in rows if row.metric == "predicted_ratio"))
    lines = ["times as fast, computed  " + "".join(f"{case:>15}" for case in cases)]
    for name in (*SINGLES[1:], *STATES):
        cells = (figures(case, name, "predicted_ratio") for case in cases)
        lines.append(f"  {name:23}" + "".join(f"{_told(cell):>15}" for cell in cells))
    for name in STATES:
        regret = figures("all", name, "regret_to_oracle")
        lines.append(f"{name}: {_told(regret)} of the oracle's time lost")
    return "\n".join(lines)


def _told(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _case_rows(case: str, found: Mapping[str, Sequence[Replay]]) -> Iterator[Row]:
    plain = _seconds(found[PLAIN])
    oracle = sum(min(found[n][at].seconds for n in SINGLES) for at in range(len(found[PLAIN])))
    best = min(_seconds(found[name]) for name in SINGLES)
    for name, replays in found.items():
        seconds = _seconds(replays)
        steps = sum(replay.forwards for replay in replays)
        drafting = sum(replay.drafting for replay in replays) / steps
        tokens = sum(replay.tokens for replay in replays)
        yield Row(case, name, "predicted_ratio", plain / seconds, "x")
        yield Row(case, name, "tokens_per_target_forward", tokens / steps, "tokens")
        yield Row(case, name, "drafting_steps", drafting, "share")
        yield Row(case, name, "regret_to_oracle", seconds / oracle - 1.0, "share of its time")
        yield Row(case, name, "regret_to_best_single", seconds / best - 1.0, "share of its time")


def _worst_rows(total: str, found: Mapping[str, Mapping[str, Sequence[Replay]]]) -> Iterator[Row]:
    for name in (*SINGLES, *STATES):
        ratios = (_seconds(of[PLAIN]) / _seconds(of[name]) for of in found.values())
        yield Row(total, name, "slowest_case", min(ratios), "x")


def _curve_rows(costs: PassCosts) -> Iterator[Row]:
    for context, times in costs.measured.items():
        for size, seconds in sorted(times.items()):
            yield Row(f"pass_at_{context}", PLAIN, f"v_{size}", seconds / times[1], "passes of one")
        yield Row(f"pass_at_{context}", PLAIN, "one_token_ms", 1000.0 * times[1], "ms")


def _seconds(replays: Sequence[Replay]) -> float:
    return sum(replay.seconds for replay in replays)


def _replays(
    method: SpeculativeMethod, texts: Sequence[Known], costs: PassCosts, clock: Working
) -> list[Replay]:
    return [replayed(method, known.prompt, known.text, costs, clock) for known in texts]


def _single(model: Model, name: str) -> SpeculativeMethod:
    presets = {"lookup": lookup.PRESETS[0], "suffix": suffix.PRESETS[0]}
    return presets[name].make(model.network, {}) if name in presets else plainly()


def _choice(
    model: Model, costs: PassCosts, history: AcceptanceHistory, clock: Working
) -> AutoMethod:
    arms = [Arm(_single(model, name), free=True) for name in SINGLES[1:]]
    return AutoMethod(arms, costs, history, clock=clock)


def _history(state: str, model: Model, others: Texts, costs: PassCosts) -> AcceptanceHistory:
    if state == "auto taught":
        return learnt(model, others, costs)
    return preset.shipped() if state == "auto" else AcceptanceHistory()


def _path() -> Path:
    try:
        return locate(MODEL)
    except ModelNotFound as error:
        raise Skipped(str(error)) from error


def main(texts: Path, into: Path) -> None:
    """Write the history that weft comes with, from a corpus that `weft train-drafter` has written.

    Its prompts are weft's own, and none of the evaluation's.
    """
    origin = tensor_file.read(texts)[1]["origin"]
    read = list(corpus.read(texts, origin).values())[::_LEARNT_EVERY]
    known = [Known(each.tokens[: each.answer], each.tokens[each.answer :]) for each in read]
    value = learnt(Model(_path()), {"corpus": known}, preset.ASSUMED).as_json()
    into.write_text(json.dumps(value, separators=(",", ":")) + "\n", "utf-8")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3]))
