"""The registry of strategies. Each is imported on first use."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from weft.core.errors import BuildError, InternalError
from weft.core.ports import Capabilities, ModelClient, ModelEvent, ModelRequest
from weft.core.suggestion import unknown
from weft.reasoning.options import ThinkOptions
from weft.reasoning.strategy import NonEmptyStrategy, Strategy

if TYPE_CHECKING:
    from weft.reasoning.code.bench import ProgramRunner
    from weft.reasoning.code.sandbox.sandbox import CodeSandbox


class UnusedModel:
    """Implements `ModelClient`; every call raises `InternalError`."""

    model = "no model"

    async def capabilities(self) -> Capabilities:
        raise InternalError("a strategy looks at its model before it is asked")

    def generate(
        self,
        request: ModelRequest,  # noqa: ARG002 - the port's signature
    ) -> AsyncGenerator[ModelEvent, None]:
        raise InternalError("a strategy asks its model before it is asked")

    async def aclose(self) -> None:
        """There is nothing to close."""


_OPTIONS = ThinkOptions()


@dataclass(frozen=True, slots=True)
class StrategyEntry:
    """The factory of a strategy (`module:callable`), a one-line summary, and its source.

    The callable takes a `ModelClient` and `ThinkOptions`, and returns a `Strategy`. `exact` names
    the models or engines with which it runs as published (empty: none), `needs` what it requires.
    `files` and `functions` are settings that hold a path, and a Python function or another value:
    workflows and the command line give them as texts. `speaker` is the node inside the thought
    whose text is the answer, and which can be streamed. `typed`: its answers can fit a schema.
    """

    make: str
    summary: str
    source: str = ""
    exact: str = "any model"
    needs: str = "a chat model"
    files: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    speaker: str = ""
    typed: bool = True


STRATEGIES: Final[Mapping[str, StrategyEntry]] = {
    "direct": StrategyEntry(
        "weft.reasoning.sampling.direct:DirectStrategy",
        "one call, the question as it is",
        speaker="answer",
    ),
    "sample": StrategyEntry(
        "weft.reasoning.sampling.strategy:SampleStrategy",
        "several samples and a vote; stops when the vote is decided, sure, unanimous or settled",
        "self-consistency, ASC, ESC, short-m@k, DeepConf, Parallel-Probe (arXiv 2203.11171 and on)",
        needs="a chat model; confidence: log probabilities; probes: going on with an answer",
        functions=("answer", "scorer", "selector"),
    ),
    "best-of": StrategyEntry(
        "weft.reasoning.sampling.strategy:BestOfStrategy",
        "several samples, the one with the highest score; a function or the model scores",
        "best-of-n",
        functions=("answer", "scorer", "selector"),
    ),
    "backtrack": StrategyEntry(
        "weft.reasoning.sampling.backtrack:BacktrackStrategy",
        "one long search: it answers, checks itself and goes back, until the answer is settled",
        "To Backtrack or Not to Backtrack (arXiv 2504.07052)",
        exact="any model that goes on with an answer; in turns with others",
        typed=False,
    ),
    "apr": StrategyEntry(
        "weft.reasoning.protocols.apr:make",
        "the model calls sub-searches with messages of its own and goes on from what they found",
        "APR (arXiv 2504.15466)",
        exact="models trained on spawn traces (messages: nodes)",
        needs="token ids: a completion server or the local model",
    ),
    "threadweaver": StrategyEntry(
        "weft.reasoning.protocols.threadweaver:make",
        "the model outlines threads, which run side by side and are read together",
        "ThreadWeaver (arXiv 2512.07843)",
        exact="models trained for it, known by their tags or `format: published`",
        needs="token ids: a completion server or the local model",
    ),
    "parallel-r1": StrategyEntry(
        "weft.reasoning.protocols.parallel_r1:make",
        "the model opens a parallel block; several paths answer it, a summary closes it",
        "Parallel-R1 (arXiv 2509.07980)",
        exact="models trained for it; its variant unseen on the local model only",
        needs="token ids: a completion server or the local model",
    ),
    "multiverse": StrategyEntry(
        "weft.reasoning.protocols.multiverse:make",
        "goals are split into outlines, paths work on them, a conclusion merges; nests",
        "Multiverse (arXiv 2506.09991)",
        exact="models trained for it, on the local model: it places positions",
        needs="token ids: a completion server or the local model",
    ),
    "npr": StrategyEntry(
        "weft.reasoning.protocols.npr:make",
        "a guideline of plans, one step for each plan, a takeaway; repeated",
        "Native Parallel Reasoner (arXiv 2512.07461)",
        exact="models trained for it, on the local model: it places positions",
        needs="token ids: a completion server or the local model",
    ),
    "parathinker": StrategyEntry(
        "weft.reasoning.protocols.parathinker:make",
        "several thoughts about one question, then one summary that reads all of them",
        "ParaThinker (arXiv 2509.04475)",
        exact="",
        needs="token ids: a completion server or the local model",
    ),
    "a2r": StrategyEntry(
        "weft.reasoning.protocols.a2r:make",
        "explore: several answers; then synthesise: one that reads all of them",
        "A2R (asymmetric two-stage reasoning)",
        needs="token ids: a completion server or the local model",
    ),
    "skeleton": StrategyEntry(
        "weft.reasoning.chat.skeleton:SkeletonStrategy",
        "a skeleton of points, each written out beside the others; says when it does not suit",
        "Skeleton-of-Thought (arXiv 2307.15337)",
        speaker="answer",
    ),
    "map-reduce": StrategyEntry(
        "weft.reasoning.mapreduce.strategy:MapReduceStrategy",
        "documents longer than the window: notes on each part, merged, one answer that cites",
        "LLMxMapReduce (arXiv 2410.09342)",
        needs="documents",
    ),
    "mirage": StrategyEntry(
        "weft.reasoning.mirage.strategy:MirageStrategy",
        "sub-questions, each a chain of look-ups in a knowledge graph; checked across, with proof",
        "MIRAGE (arXiv 2508.18260)",
        needs="a knowledge graph: a file of triples (setting `graph`), or documents of triples",
        files=("graph",),
    ),
    "abstraction": StrategyEntry(
        "weft.reasoning.chat.abstraction:AbstractionStrategy",
        "an outline in general terms, then the solution along it",
        "Abstraction-of-Thought (arXiv 2406.12442)",
        exact="",
    ),
    "self-refine": StrategyEntry(
        "weft.reasoning.chat.self_refine:SelfRefineStrategy",
        "it answers, criticises its answer and revises it, until a critique finds nothing",
        "Self-Refine (arXiv 2303.17651)",
    ),
    "pasta": StrategyEntry(
        "weft.reasoning.protocols.pasta:make",
        "the text goes on while promised parts of it are written beside it",
        "PASTA (arXiv 2502.11517)",
        exact="models trained for it, by their tags or `format: published`",
        needs="token ids: a completion server or the local model",
    ),
    "sprint": StrategyEntry(
        "weft.reasoning.protocols.sprint:make",
        "rounds of independent plans, carried out side by side, until the planner is done",
        "SPRINT (arXiv 2506.05745)",
        exact="models trained for it, by weft's tags or `format: published`",
        needs="token ids: a completion server or the local model",
    ),
    "leap": StrategyEntry(
        "weft.reasoning.protocols.leap:make",
        "paths pause, sum up, read what some of the others found, and go on; a vote",
        "LeaP (arXiv 2505.07787)",
        needs="token ids: a completion server or the local model",
    ),
    "hogwild": StrategyEntry(
        "weft.reasoning.concurrent.hogwild:make",
        "workers that read one another's tokens while they write, step by step",
        "Hogwild! Inference (arXiv 2504.06261)",
        exact="models like Llama and Qwen, on the local model: it has concurrent attention",
    ),
    "group-think": StrategyEntry(
        "weft.reasoning.concurrent.group_think:make",
        "thinkers at positions of their own, each reading every word of the others at once",
        "Group Think (arXiv 2505.11107)",
        exact="models like Llama and Qwen, on the local model: it has concurrent attention",
    ),
    "sstar": StrategyEntry(
        "weft.reasoning.code.sstar:SStarStrategy",
        "programs, mended by running them on tests; inputs on which they differ decide",
        "S* (arXiv 2502.14382)",
        needs="a programming problem, tests if there are any (document `tests.json`), a sandbox",
        typed=False,
    ),
    "plansearch": StrategyEntry(
        "weft.reasoning.code.plansearch:PlanSearchStrategy",
        "observations, combinations of them, plans, plans that criticise them, then programs",
        "PlanSearch (arXiv 2409.03733)",
        needs="a programming problem, tests if there are any (document `tests.json`), a sandbox",
        typed=False,
    ),
}
"""The strategies that `make_strategy` can make."""


def make_strategy(
    name: str,
    model: ModelClient,
    options: ThinkOptions = _OPTIONS,
    *,
    programs: Callable[[CodeSandbox], ProgramRunner] | None = None,
) -> Strategy:
    """The strategy `name` over `model`; an empty answer makes it fail.

    `programs`: what runs the programs of a strategy for code in place of its sandbox, if anything.
    Raises: what `bare_strategy` raises.
    """
    strategy = bare_strategy(name, model, options)
    if programs is not None and isinstance(strategy, PlacesPrograms):
        strategy.place_programs(programs)
    return NonEmptyStrategy(strategy)


@runtime_checkable
class PlacesPrograms(Protocol):
    """A strategy that runs programs, and can have them run elsewhere."""

    def place_programs(self, place: Callable[[CodeSandbox], ProgramRunner]) -> None:
        """See `CodeStrategy.place_programs`."""


def bare_strategy(name: str, model: ModelClient, options: ThinkOptions = _OPTIONS) -> Strategy:
    """The strategy as published; its answer may be empty, where a search found nothing.

    Raises: `BuildError` for an unknown name (it lists the known ones), or for settings in `options`
    that the strategy does not have.
    """
    entry = STRATEGIES.get(name)
    if entry is None:
        raise unknown(BuildError, "strategy", name, STRATEGIES)
    module, _, function = entry.make.partition(":")
    made: Callable[[ModelClient, ThinkOptions], Strategy]
    made = getattr(import_module(module), function)
    return made(model, options)


def check_options(name: str, options: ThinkOptions) -> None:
    """Check that the strategy exists and has these settings. Needs no model.

    Raises: what `make_strategy` raises.
    """
    make_strategy(name, UnusedModel(), options)
