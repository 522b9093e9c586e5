"""What a fork and a join cost on vLLM: the critical path, all tokens, the prefix cache, wall time.

The same shape of a tree three times: plain requests of token ids (what the server allows), weft's
runtime with a protocol of this shape, and all its text in one request, token after token. Lengths
are fixed, prompts are new in every round, and the systems take turns in changing order. Hits are
those that the server counts, against the full blocks that it could have had (`shared_blocks`).
"""

from __future__ import annotations

import asyncio
import re
import sys
import time
import urllib.request
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from statistics import median
from typing import Final

from evals.engine.rows import Lookup, Row, spread
from evals.planning.effort import Effort, Skipped
from evals.reasoning.fork_join import OneFork, Shape, fork, fork_join, headers, words, written
from evals.reasoning.report import Target
from evals.reasoning.shared_blocks import SharedBlocks
from weft.core.errors import WeftError
from weft.reasoning.options import ThinkOptions
from weft.reasoning.question import Question
from weft.reasoning.runtime import GrammarStrategy
from weft.reasoning.strategy import run_thought
from weft.reasoning.thought import ThoughtCounts
from weft.serving.fleet import Fleet
from weft.serving.openai import OpenAIModel
from weft.serving.vllm.client.demand import demand
from weft.serving.vllm.launch.spec import ServeSpec

NAME: Final = "smollm2-135m-instruct"
SYSTEMS: Final = ("requests", "runtime", "sequential")
TARGETS: Final = tuple(
    Target(f"fork_join_{width}", system, "hit_share", 0.95)
    for width in (2, 4, 8)
    for system in ("requests", "runtime")
)
_POLL_S, _POLLS = 0.02, 500
_ENDLESS: Final = {"ignore_eos": True}
_BLOCK = re.compile(r'vllm:cache_config_info\{[^}]*[{,]block_size="(\d+)"')


async def run(effort: Effort) -> list[Row]:
    """All rows. Raises: `Skipped` where no vLLM comes up."""
    try:
        lease = await demand(ServeSpec(NAME, max_context_tokens=4096, max_seqs=16))
    except WeftError as error:
        raise Skipped(f"no vLLM: {error}") from error
    try:
        async with aclosing(OpenAIModel(lease.urls[0], lease.name, priority=True)) as server:
            block = await block_tokens(lease.urls[0])
            about = f"{NAME}, vLLM, blocks of {block} tokens, one replica"
            rows = [Row("fork_join", "", f"model: {about}", None, "")]
            for shape in shapes(effort):
                rows += await _compared(Bench(server, block, shape), effort.of(3, 7))
            return rows
    finally:
        await lease.release()


def shapes(effort: Effort) -> Sequence[Shape]:
    """The trees: one that is short, or several."""
    short = Shape(4, prompt=320, before=24, child=48, after=24)
    return effort.of((short,), tuple(Shape(width) for width in (2, 4, 8)))


async def block_tokens(base_url: str) -> int:
    """How many tokens the server keeps together. Raises: `Skipped` when it does not say."""

    def read() -> str:
        url = f"{base_url.removesuffix('/v1')}/metrics"
        with urllib.request.urlopen(url, timeout=10) as page:
            text: str = page.read().decode()
            return text

    found = _BLOCK.search(await asyncio.to_thread(read))
    if found is None:
        raise Skipped("the server does not say how large its blocks are")
    return int(found[1])


@dataclass(frozen=True, slots=True)
class Bench:
    """One server, of which nobody else asks anything meanwhile, and a shape."""

    server: OpenAIModel
    block: int
    shape: Shape

    def client(self) -> SharedBlocks:
        """A client as users have it, which notes what could be shared."""
        return SharedBlocks(Fleet([self.server]), self.block, _ENDLESS)

    async def hits(self) -> int:
        """Prompt tokens found in the cache so far, once nothing runs any more."""
        for _ in range(_POLLS):
            reading = await self.server.metrics()
            if not reading.running:
                return reading.prefix_hits
            await asyncio.sleep(_POLL_S)
        raise Skipped("the server works for somebody else")

    async def siblings(self, seed: int) -> tuple[int, int]:
        """Tokens that siblings found in the cache, and those in the full blocks that they share."""
        client = self.client()
        prompt = await words(client, self.shape.prompt, seed)
        begun = await headers(client, self.shape)
        trunk = await written(client, prompt, self.shape.before)
        before = await self.hits()
        await fork(client, self.shape, trunk, begun)
        return await self.hits() - before, client.shared_tokens

    async def requests(self, seed: int) -> Found:
        """The tree by plain requests."""
        client = self.client()
        prompt = await words(client, self.shape.prompt, seed)
        begun = await headers(client, self.shape)
        shape = self.shape
        # The first child follows its own prompt in the join, as it did before.
        again = (shape.width - 1) * shape.child
        counts = ThoughtCounts(shape.generated, 0, shape.critical_path, again)

        async def tree() -> ThoughtCounts:
            await fork_join(client, shape, prompt, begun)
            return counts

        return await self._measured(client, tree)

    async def runtime(self, seed: int) -> Found:
        """The tree by the runtime."""
        client, shape = self.client(), self.shape
        text = await client.decode(await words(client, shape.prompt, seed))
        options = ThinkOptions(
            width=shape.width, max_tokens=shape.generated, answer_tokens=1, temperature=0.0
        )
        strategy = GrammarStrategy(OneFork(shape), client, options)

        async def tree() -> ThoughtCounts:
            return (await run_thought(strategy, Question(text))).counts

        return await self._measured(client, tree)

    async def sequential(self, seed: int) -> Found:
        """As many tokens one after the other."""
        client = self.client()
        prompt = await words(client, self.shape.prompt, seed)
        tokens = self.shape.generated

        async def line() -> ThoughtCounts:
            await written(client, prompt, tokens)
            return ThoughtCounts(tokens, 0, tokens)

        return await self._measured(client, line)

    async def _measured(
        self, client: SharedBlocks, work: Callable[[], Awaitable[ThoughtCounts]]
    ) -> Found:
        before = await self.hits()
        begun = time.monotonic()
        counts = await work()
        wall_s = time.monotonic() - begun
        return Found(wall_s, counts, await self.hits() - before, client.shared_tokens)


@dataclass(frozen=True, slots=True)
class Found:
    """One run: its time, its counts, the tokens that were in the cache and those that could be."""

    wall_s: float
    counts: ThoughtCounts
    hits: int
    shared: int


@dataclass(slots=True)
class _Tally:
    runs: dict[str, list[Found]] = field(default_factory=dict)

    def ratio(self, system: str) -> float:
        """How many times as long the sequential text took, round by round."""
        pairs = zip(self.runs["sequential"], self.runs[system], strict=True)
        return median(line.wall_s / tree.wall_s for line, tree in pairs)

    def rows(self, case: str, system: str) -> list[Row]:
        runs = self.runs[system]
        counts, walls = runs[0].counts, [one.wall_s for one in runs]
        low, high = spread(walls)
        shared = sum(one.shared for one in runs)
        figures: list[tuple[str, float | None, str]] = [
            ("wall_s", median(walls), "s"),
            ("wall_p10_s", low, "s"),
            ("wall_p90_s", high, "s"),
            ("rounds", len(runs), "rounds"),
            ("total_tokens", counts.total_tokens, "tokens"),
            ("critical_path_tokens", counts.critical_path_tokens, "tokens"),
            ("prefill_extra_tokens", counts.prefill_extra_tokens, "tokens"),
        ]
        if shared:
            figures.append(("hit_share", sum(one.hits for one in runs) / shared, "share"))
        if system != "sequential":
            line = self.runs["sequential"][0].counts.critical_path_tokens
            figures.append(("speedup", self.ratio(system), "x"))
            figures.append(("path_ratio", line / counts.critical_path_tokens, "x"))
        return [Row(case, system, metric, value, unit) for metric, value, unit in figures]


async def _compared(bench: Bench, rounds: int) -> list[Row]:
    """Rounds in which all systems take turns; the first round is not counted."""
    case, tally = f"fork_join_{bench.shape.width}", _Tally()
    for number in range(rounds + 1):
        turns = [SYSTEMS[(number + place) % len(SYSTEMS)] for place in range(len(SYSTEMS))]
        for system in turns:
            seed = 1000 * bench.shape.width + 10 * number + SYSTEMS.index(system)
            found = await getattr(bench, system)(seed)
            if number:
                tally.runs.setdefault(system, []).append(found)
        print(f"{case}: round {number} of {rounds}", file=sys.stderr, flush=True)
    found_of = [await bench.siblings(900_000 + 1000 * bench.shape.width + n) for n in range(3)]
    hits, shared = (sum(column) for column in zip(*found_of, strict=True))
    rows = [row for system in SYSTEMS for row in tally.rows(case, system)]
    return [*rows, Row(case, "siblings", "hit_share", hits / shared, "share")]


def table(rows: Sequence[Row]) -> str:
    """A line for each width and system."""
    figures = Lookup(rows)
    cases = sorted({row.case for row in rows if row.case.startswith("fork_join_")})
    lines = [row.metric for row in rows if row.value is None]
    lines.append(
        "| children | system | wall s | times faster | critical path | tokens | computed again"
        " | cache hits of those possible |"
    )
    lines.append("|---" * 8 + "|")
    for case in cases:
        for system in SYSTEMS:
            value = [
                figures(case, system, metric)
                for metric in (
                    "wall_s",
                    "speedup",
                    "critical_path_tokens",
                    "total_tokens",
                    "prefill_extra_tokens",
                    "hit_share",
                )
            ]
            cells = ["" if one is None else f"{one:,.2f}".removesuffix(".00") for one in value]
            lines.append(f"| {case.rpartition('_')[2]} | {system} | {' | '.join(cells)} |")
        share = figures(case, "siblings", "hit_share")
        lines.append(f"\nSiblings of {case} alone: {share:.1%} of their shared full blocks.\n")
    return "\n".join(lines)
