"""vLLM with weft's proposer, with its own n-gram drafts, and plain, on text that agents write.

Two servers at a time, as `weft serve` starts them: one drafts, one does not. Each prompt goes to
one and then to the other, in turns the other way round, so that a machine that slows down slows
both. No server sees a prompt twice, so no proposer has seen its answer: but for `agents again`,
where the same nodes are run once more with the same inputs.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from evals.engine.rows import Lookup, Row
from evals.planning.effort import Skipped
from evals.reasoning.report import Target
from evals.speculative.cases import AGENTS, CASES
from evals.speculative.cases.prompt import Prompt
from evals.speculative.figures import method_rows, plain_rows
from evals.speculative.rounds import Size
from evals.speculative.taken import Taken
from weft.core.errors import EngineMissing, ModelNotFound
from weft.core.ports import ModelRequest, Prefilled, Program, Sampling
from weft.core.values import Completion
from weft.serving.vllm.client.model import VllmModel
from weft.serving.vllm.launch.decoders import parse_speculative
from weft.serving.vllm.launch.engine import distribution_here
from weft.serving.vllm.launch.spec import ServeSpec
from weft.serving.weights import locate

MODEL: Final = "smollm2-135m-instruct"
LENGTH: Final = 8
PLAIN: Final = "vllm plain"
SYSTEMS: Final[Mapping[str, str]] = {
    "vllm weft": f"weft:{LENGTH}",
    "vllm ngram": f"ngram:{LENGTH},prompt_lookup_min=2,prompt_lookup_max=5",
}
"""By system: its decoder. vLLM's own default of 5 tokens to match at least drafts far less."""
TARGETS: Final = (
    Target("agents", "vllm weft", "identical_outputs", 1.0),
    Target("agents", "vllm weft", "better_than_ngram", 1.0),
)
QUICK: Final = Size(1, 32, back=False)
FULL: Final = Size(10, 64, back=False)
_AT_ONCE: Final = 8
_SHOWN: Final = ("tokens_per_target_forward", "wall_ratio", "identical_outputs")

Answers = list[Taken]
Pair = tuple[Answers, Answers]
"""Of plain vLLM and of one that drafts, for the same prompts in the same order."""


@dataclass(frozen=True, slots=True)
class Side:
    """A server as one comparison asks it: what it cached of prompts for another one is not found.

    The plain server of the first comparison may serve the next one as well.
    """

    model: VllmModel
    salt: str

    async def answer(self, case: str, prompt: Prompt, most: int) -> Taken:
        """A greedy answer for a node named as its case; timed from when its prompt was read."""
        extra: dict[str, Any] = {"cache_salt": self.salt}
        if prompt.schema is not None:
            # as a schema of the request, an answer that is cut off would be an error
            extra["structured_outputs"] = {"json": prompt.schema}
        request = ModelRequest(
            prompt.messages,
            sampling=Sampling(max_tokens=most, temperature=0.0),
            grammar=prompt.grammar,
            program=Program(prompt.id, node=case),
            extra=extra,
        )
        begun = time.perf_counter()
        async with aclosing(self.model.generate(request)) as events:
            async for event in events:
                if isinstance(event, Prefilled):
                    begun = time.perf_counter()
                elif isinstance(event, Completion):
                    return _taken(event, time.perf_counter() - begun)
        raise AssertionError("a model's answer ends with its completion")


def rows(quick: bool) -> list[dict[str, Any]]:
    """The figures of `MODEL`. Raises: `Skipped` where it is not, or no vLLM."""
    try:
        locate(MODEL)
        distribution_here()
    except (ModelNotFound, EngineMissing) as error:
        raise Skipped(str(error)) from error
    with _servers_of_its_own():
        return [asdict(row) for row in asyncio.run(measured(QUICK if quick else FULL))]


def table(rows: Sequence[Row]) -> str:
    """A line for each case: tokens a pass, the ratio of times, and whether outputs are the same."""
    figures = Lookup(rows)
    cases = dict.fromkeys(row.case for row in rows if row.metric == "wall_ratio")
    lines = [f"{'':16}" + "".join(f"{name:>34}" for name in SYSTEMS)]
    for case in cases:
        cells = (
            " ".join(f"{_told(figures(case, system, metric)):>10}" for metric in _SHOWN)
            for system in SYSTEMS
        )
        lines.append(f"{case:16}" + "".join(f"{cell:>34}" for cell in cells))
    return "\n".join([*lines, f"each: {', '.join(_SHOWN)}"])


def _told(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


async def measured(size: Size) -> list[Row]:
    """The figures of all systems in all cases of agents."""
    found: list[Row] = []
    for system, decoder in SYSTEMS.items():
        print(f"{system} beside {PLAIN}", file=sys.stderr, flush=True)
        async with (
            aclosing(_model("autoregressive")) as plain,
            aclosing(_model(decoder)) as drafting,
        ):
            found += await compared(system, Side(plain, system), Side(drafting, system), size)
    figures = Lookup(found)
    for case in dict.fromkeys(row.case for row in found):
        ours, theirs = (
            figures(case, system, "tokens_per_target_forward")
            for system in ("vllm weft", "vllm ngram")
        )
        if ours and theirs:
            found.append(Row(case, "vllm weft", "better_than_ngram", ours / theirs, "x"))
    return found


async def compared(system: str, plain: Side, drafting: Side, size: Size) -> list[Row]:
    """One system against plain vLLM: one request at a time, then several at once."""
    found: list[Row] = []
    alone: dict[str, Pair] = {}
    together: list[tuple[Pair, float, float]] = []
    for case in AGENTS:
        *prompts, first = CASES[case](2 * size.prompts + 1)
        for side in (plain, drafting):  # neither a server's first request nor a new grammar counts
            await side.answer(case, first, 4)
        alone[case] = await _in_turns(plain, drafting, case, prompts[: size.prompts], size.tokens)
        found += _rows(case, system, *alone[case])
        for number in range(size.prompts, len(prompts), _AT_ONCE):
            some = prompts[number : number + _AT_ONCE]
            order = (plain, drafting) if number // _AT_ONCE % 2 else (drafting, plain)
            took = {side: await _at_once(side, case, some, size.tokens) for side in order}
            pair = took[plain][0], took[drafting][0]
            together.append((pair, took[plain][1], took[drafting][1]))
    found += _rows("agents", system, *_joined(alone.values()))
    found += _rows_together(system, together)
    again = [
        await _in_turns(plain, drafting, case, CASES[case](size.prompts), size.tokens)
        for case in AGENTS
    ]
    return [*found, *_rows("agents again", system, *_joined(again))]


async def _in_turns(
    plain: Side, drafting: Side, case: str, prompts: Sequence[Prompt], most: int
) -> Pair:
    slow: Answers = []
    fast: Answers = []
    for number, prompt in enumerate(prompts):
        turns = [(plain, slow), (drafting, fast)]
        for side, answers in turns if number % 2 else reversed(turns):
            answers.append(await side.answer(case, prompt, most))
    return slow, fast


async def _at_once(
    side: Side, case: str, prompts: Sequence[Prompt], most: int
) -> tuple[Answers, float]:
    """The answers, and the seconds until the last one, prompts included."""
    begun = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(side.answer(case, prompt, most)) for prompt in prompts]
    return [task.result() for task in tasks], time.perf_counter() - begun


def _taken(completion: Completion, seconds: float) -> Taken:
    """The pass that read the prompt's end wrote the first token; vLLM does not count it."""
    tokens, told = completion.token_ids, completion.speculation
    if told is None:
        return Taken(tokens, len(tokens), seconds)
    return Taken(
        tokens,
        told.forwards + 1,
        seconds,
        told.drafted,
        told.accepted,
        told.tested,
        told.held,
        fallback=told.fallback,
    )


def _joined(pairs: Iterable[Pair]) -> Pair:
    listed = list(pairs)
    return (
        [one for slow, _ in listed for one in slow],
        [one for _, fast in listed for one in fast],
    )


def _rows(case: str, system: str, slow: Answers, fast: Answers) -> list[Row]:
    plain = [replace(row, system=PLAIN) for row in plain_rows(case, slow)]
    return [
        *(plain if system == next(iter(SYSTEMS)) else []),
        *method_rows(case, system, slow, fast),
    ]


def _rows_together(system: str, rounds: Sequence[tuple[Pair, float, float]]) -> Iterator[Row]:
    case = f"agents x{_AT_ONCE}"
    slow, fast = _joined([pair for pair, _, _ in rounds])
    for row in method_rows(case, system, slow, fast):
        if not row.metric.startswith("wall_ratio"):  # of one among several it says little
            yield row
    plain_s, drafting_s = (sum(times) for times in zip(*(each[1:] for each in rounds), strict=True))
    yield Row(case, system, "wall_ratio", plain_s / drafting_s, "x")


def _model(decoder: str) -> VllmModel:
    return VllmModel(
        ServeSpec(
            MODEL,
            dtype="float32",
            decode=parse_speculative(decoder),
            max_context_tokens=4096,
            kv_cache_bytes=2**30,
        )
    )


@contextmanager
def _servers_of_its_own() -> Iterator[None]:
    """Whatever else of the user's runs is left alone."""
    before = os.environ.get("WEFT_STATE_DIR")
    with tempfile.TemporaryDirectory() as state:
        os.environ["WEFT_STATE_DIR"] = state
        try:
            yield
        finally:
            del os.environ["WEFT_STATE_DIR"]
            if before is not None:
                os.environ["WEFT_STATE_DIR"] = before
