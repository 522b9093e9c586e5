"""Every decoder of a model in this process, in every case: passes, accepted tokens, time.

Each prompt is answered by all of them in turn and back again, plainly first and last, so that a
machine that slows down slows all of them. What a grammar holds goes through the local engine.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from evals.engine.rows import Lookup, Row
from evals.planning.effort import Skipped
from evals.reasoning.report import Target
from evals.speculative.batches import batch_rows
from evals.speculative.beside import beside
from evals.speculative.cases import AGENTS, CASES
from evals.speculative.cases.specbench import TASKS
from evals.speculative.figures import PLAIN, method_rows, plain_rows
from evals.speculative.rounds import Answers, Rounds, Size
from evals.speculative.served import BATCH, Served
from evals.speculative.single import Model
from evals.speculative.systems import Methods, System, systems
from weft.core.errors import ModelNotFound
from weft.serving.weights import locate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MODEL: Final = "smollm2-135m-instruct"
TARGETS: Final = (
    Target("agent_quoting", "lookup", "tokens_per_target_forward", 2.0),
    Target("agent_quoting", "suffix", "tokens_per_target_forward", 2.0),
)
TOTALS: Final[Mapping[str, Sequence[str]]] = {"spec_bench": TASKS, "agents": AGENTS}
QUICK: Final = Size(1, 24, back=False)
FULL: Final = Size(5, 64, back=True)
HURRIED: Final = ("mt_bench", "agent_quoting")
TOGETHER: Final = ("agent_quoting", "mt_bench")
"""Cases that are also asked in batches, by the decoders of `_SHARING`; none is left out there."""
SLOW: Final = ("self_draft", "sequoia", "pearl", "continuous", "llmcad", "easyspec")
"""A network drafts here, at a third of the speed of plain decoding where nobody trained it."""
_SHARING: Final = ("lookup", "suffix", "self_draft", "medusa", "lookahead")


def rows(quick: bool) -> list[dict[str, Any]]:
    """The figures of `MODEL`. Raises: `Skipped` where it is not."""
    try:
        path = locate(MODEL)
    except ModelNotFound as error:
        raise Skipped(str(error)) from error
    if not quick:
        return [asdict(row) for row in _measured(path, tuple(CASES), FULL, ())]
    found = _measured(path, HURRIED, QUICK, SLOW)
    why = f"skipped: in a hurry {', '.join(HURRIED)} only"
    left = [Row(case, "", why, None, "") for case in CASES if case not in HURRIED]
    return [asdict(row) for row in (*found, *left)]


def _measured(path: Path, cases: Sequence[str], size: Size, slow: Sequence[str]) -> list[Row]:
    return asyncio.run(measured(path, list(systems()), cases, size, slow))


async def measured(
    path: Path,
    wanted: Sequence[System],
    cases: Sequence[str],
    size: Size,
    slow: Sequence[str] = (),
    device: str = "cpu",
) -> list[Row]:
    """The figures of `wanted` in `cases`, of those that are `slow` in a few; and their totals."""
    found: list[Row] = []
    answers: dict[str, Answers] = {}
    model, served = Model(path, device), Served(path, device)
    with Methods(model.network, wanted) as methods:
        rounds = Rounds(model, served, methods)
        for case in cases:
            print(f"{case}, {size.prompts} prompts", file=sys.stderr, flush=True)
            try:
                prompts = CASES[case](size.prompts)
            except Skipped as reason:
                found.append(Row(case, "", f"skipped: {reason}", None, ""))
                continue
            here = [each for each in wanted if case in TOGETHER or each.name not in slow]
            answers[case] = await rounds.answers(prompts, here, size)
            found += _case_rows(case, answers[case])
            if case in (TOGETHER if size.back else TOGETHER[:1]):
                sharing = _SHARING if size.back else _SHARING[:2]
                there = [each for each in wanted if each.name in {*sharing} & {*methods.made}]
                eight = CASES[case](BATCH)
                found += await batch_rows(case, eight, served, there, size.tokens)
        for name, why in methods.missing.items():
            found.append(Row("all", name, f"skipped: {why}", None, ""))
        for name in slow:
            where = f"measured in {' and '.join(TOGETHER)} only"
            found.append(Row("all", name, f"skipped: {where}, in a hurry", None, ""))
    await served.close()
    return [*found, *_total_rows(answers)]


def _total_rows(answers: Mapping[str, Answers]) -> Iterator[Row]:
    for total, parts in TOTALS.items():
        there = [answers[case] for case in parts if case in answers]
        if len(there) > 1:
            everywhere = [name for name in there[0] if all(name in part for part in there)]
            joined = {name: [one for part in there for one in part[name]] for name in everywhere}
            yield from _case_rows(total, joined)


def _case_rows(case: str, answers: Answers) -> list[Row]:
    plain = answers[PLAIN]
    found = plain_rows(case, plain)
    for name, taken in answers.items():
        if name != PLAIN:
            found += method_rows(case, name, plain, taken)
    return found


def table(rows: Sequence[Row]) -> str:
    """Tokens a pass and ratios of times, systems down and cases across; then the published."""
    figures = Lookup(rows)
    cases = list(dict.fromkeys(row.case for row in rows if row.metric == "tokens_per_s"))
    names = list(dict.fromkeys(row.system for row in rows if row.metric == "wall_ratio"))
    heads = "".join(f"{case:>14}" for case in cases)
    lines: list[str] = []
    for metric, title in _SHOWN.items():
        lines.append(f"{title:24}{heads}")
        for name in (PLAIN, *names):
            cells = (figures(case, name, metric) for case in cases)
            lines.append(f"  {name:22}" + "".join(_cell(value) for value in cells))
    lines += [f"{row.system:24}{row.metric}" for row in rows if row.metric.startswith("skipped")]
    return "\n".join([*lines, "", beside(rows)])


def panel(axes: Axes, figures: Lookup) -> None:
    """Tokens a pass of every system, of Spec-Bench and of agents' text."""
    names = [each.name for each in systems() if figures("agents", each.name, "wall_ratio")]
    places = range(len(names))
    for offset, total in ((-0.2, "spec_bench"), (0.2, "agents")):
        values = [figures(total, name, "tokens_per_target_forward") or 0.0 for name in names]
        axes.barh([place + offset for place in places], values, 0.4, label=total)
        for place, name in zip(places, names, strict=True):
            ratio = figures(total, name, "wall_ratio_total")
            axes.text(0.05, place + offset, f"{ratio:.2f}x", va="center", fontsize=7, color="white")
    axes.axvline(1.0, color="grey", linewidth=0.8)
    axes.set_yticks(list(places), names)
    axes.invert_yaxis()
    axes.set_xlabel("tokens a pass of the target (in the bars: speed against plain decoding)")
    axes.legend()


_SHOWN: Final = {
    "tokens_per_target_forward": "tokens a pass",
    "wall_ratio": "times as fast",
    "identical_outputs": "identical outputs",
}


def _cell(value: float | None) -> str:
    return f"{'-' if value is None else format(value, '.2f'):>14}"
