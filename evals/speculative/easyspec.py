"""EasySpec's drafting: how long it takes over two processes, and how much worse its drafts are.

The embedded model drafts for itself, whole and cut short, so nothing here is faster than plain
decoding: what is measured is the drafting. Systems take turns within one run.

    sequential          one process, one thread, attentions in order; what ratios are to
    sequential_threads  the same with two threads
    in_order            two processes: attentions in order, MLPs and head cut in two
    group_2, _3, _4     two processes: so many neighbouring attentions at once
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any, Final

from evals.engine.rows import spread
from evals.planning.effort import Skipped
from evals.speculative.cases import CASES
from evals.speculative.cases.prompt import Prompt
from evals.speculative.single import Model, plainly
from evals.speculative.taken import Together
from weft.core.errors import ModelNotFound
from weft.decoding.speculative.drafters.model.easyspec import EasySpecMethod
from weft.decoding.speculative.drafters.model.layer_parallel.layered import (
    DraftJob,
    DraftTeam,
    InProcessTeam,
)
from weft.decoding.speculative.drafters.model.layer_parallel.processes import ProcessTeam
from weft.decoding.speculative.drafters.model.layer_parallel.shard import ShardLayout
from weft.serving.weights import locate

MODEL: Final = "smollm2-135m-instruct"
TOKENS: Final = 5  # of a draft
GROUPS: Final = (2, 3, 4)
SHORT_LAYERS: Final = 24
_CASES: Final = ("agent_plans", "agent_quoting", "agent_edits")
_CONTEXT_TOKENS: Final = 64


def rows(quick: bool) -> list[dict[str, Any]]:
    """All rows. Raises: `Skipped` in a hurry, and where the model is not on this machine."""
    if quick:
        raise Skipped("in a hurry: six teams of processes load the model")
    try:
        path = locate(MODEL)
    except ModelNotFound as missing:
        raise Skipped(str(missing)) from missing
    return [
        *_time_rows(path, 30),
        *_accepted_rows(path, 8, 48),
    ]


def layouts(path: Path) -> Mapping[str, ShardLayout]:
    """The draft model in every system."""
    one = ShardLayout(path, ranks=1, group=1, dtype="float32")
    return {
        "sequential": one,
        "sequential_threads": replace(one, threads=2),
        "in_order": replace(one, ranks=2),
        **{f"group_{size}": replace(one, ranks=2, group=size) for size in GROUPS},
    }


@contextmanager
def _teams(path: Path) -> Iterator[Mapping[str, DraftTeam]]:
    with ExitStack() as open_teams:
        made: dict[str, DraftTeam] = {}
        for name, layout in layouts(path).items():
            made[name] = ProcessTeam(layout) if layout.ranks > 1 else InProcessTeam(layout)
            open_teams.callback(made[name].close)
        yield made


def _time_rows(path: Path, rounds: int) -> list[dict[str, Any]]:
    """A step of a long sequence in each system: three committed tokens are read, then a draft."""
    taken: dict[str, list[float]] = {}
    with _teams(path) as teams:
        prompt = tuple(100 + n for n in range(_CONTEXT_TOKENS))
        for team in teams.values():
            team.draft([DraftJob(0, 0, prompt, TOKENS)])
        job = DraftJob(0, len(prompt), (90, 91, 92), TOKENS)  # drafts after it are written over
        for number in range(rounds):
            shift = number % len(teams)
            for name in [*teams][shift:] + [*teams][:shift]:
                begun = time.perf_counter()
                teams[name].draft([job])
                taken.setdefault(name, []).append(time.perf_counter() - begun)
    found = []
    for name, seconds in taken.items():
        ratios = [own / plain for own, plain in zip(seconds, taken["sequential"], strict=True)]
        low, high = spread(ratios)
        case = f"draft_of_{TOKENS}"
        found += [
            _row(case, name, "draft_s", median(seconds), "s"),
            _row(case, name, "draft_time_ratio", median(ratios), "x"),
            _row(case, name, "draft_time_ratio_p10", low, "x"),
            _row(case, name, "draft_time_ratio_p90", high, "x"),
        ]
    return found


def _accepted_rows(path: Path, prompts: int, most_tokens: int) -> list[dict[str, Any]]:
    """Accepted tokens and the text, with drafts in exact order and in groups."""
    model = Model(path, dtype="float32")
    chosen = [prompt for case in _CASES for prompt in _free(case, prompts)]
    found = []
    for case, layers in (("whole_self", None), (f"first_{SHORT_LAYERS}_layers", SHORT_LAYERS)):
        methods = {
            name: EasySpecMethod(InProcessTeam(replace(layout, layers=layers)), TOKENS)
            for name, layout in layouts(path).items()
            if name == "sequential" or name.startswith("group")
        }
        plain = plainly()
        taken: dict[str, list[Any]] = {name: [] for name in methods}
        same = dict.fromkeys(methods, 0)
        for prompt in chosen:
            print(f"easyspec {case} {prompt.id}", file=sys.stderr, flush=True)
            read = model.read(prompt, [plain])
            wanted = read.answer(plain, most_tokens).tokens
            for name, method in methods.items():
                answer = read.answer(method, most_tokens)
                taken[name].append(answer)
                same[name] += answer.tokens == wanted and not answer.fallback
        for name, answers in taken.items():
            together = Together(answers)
            found += [
                _row(case, name, "accepted_length", together.accepted_length, "tokens"),
                _row(case, name, "identical_outputs", same[name] / len(chosen), "share"),
            ]
    return found


def _free(case: str, count: int) -> Sequence[Prompt]:
    return [prompt for prompt in CASES[case](count) if prompt.free]


def _row(case: str, system: str, metric: str, value: float, unit: str) -> dict[str, Any]:
    return {"case": case, "system": system, "metric": metric, "value": value, "unit": unit}
