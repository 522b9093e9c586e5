"""A planner: a model that writes a plan, constrained to the language of plans as far as possible.

Yields every step as soon as it is written; runs nothing.

Both constrained modes are exact. One grammar for the whole plan takes one request; it keeps the
kinds of earlier results in 64 bits, so that the plan is short where tools return many kinds. Line
by line has no such bound: each line has a grammar made from the types of all earlier results, and
continues the unfinished answer, so that the server's prefix cache applies. "auto" takes one grammar
if it has room for enough steps, or if the model cannot continue an answer.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, Literal

from weft.core.errors import (
    BuildError,
    CapabilityError,
    ModelRequestError,
    PlanError,
)
from weft.core.ports.model import (
    BOUND_THOUGHT_HINT,
    THOUGHT_HINT,
    ModelClient,
    ModelRequest,
    Sampling,
)
from weft.core.values import JsonSchema, Message, ToolSpec, Usage
from weft.planner.compact import ASK_CHARS, COMPACT
from weft.planner.draft import PlanDraft, PlanHooks, unchanged
from weft.planner.grammar import GrammarLimits, loosened, most_steps, plan_grammar, step_grammar
from weft.planner.grammar.limits import Constrain, reached_limits
from weft.planner.plan import LIMITS, Plan, PlanLimits, PlanStep
from weft.planner.text.reader import PlanReader

Known = Mapping[int, JsonSchema | None]
Mode = Literal["line", "plan", "never"]

_SAMPLING: Final = Sampling(max_tokens=1024, temperature=0.0)
_GRAMMAR: Final = GrammarLimits()
_MAX_TOKENS: Final = 1024
_JOIN_TOKENS: Final = 48
_LAST_RESULTS: Final = 4
_ENOUGH_STEPS: Final = 12
_SEEDS: Final = 2**31


class Planner:
    """Writes plans with `model`; stateless, so that many can be written at once.

    `sampling.max_tokens` bounds a plan, over all its requests; 1,024 where it is None. With a
    grammar, a model that can continue an unfinished answer reserves some of them for the join.
    `extra`: further fields of each request.
    `constrain`: see `weft.planner.grammar.limits`. With "auto", a model without grammars writes
    freely, and `on_note` of `stream` is notified.
    """

    def __init__(
        self,
        model: ModelClient,
        *,
        constrain: Constrain = "auto",
        sampling: Sampling = _SAMPLING,
        limits: PlanLimits = LIMITS,
        grammar: GrammarLimits = _GRAMMAR,
        extra: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self.model = model
        self.constrain = constrain
        self.sampling = sampling
        self.limits = limits
        self.grammar = grammar
        self.extra = extra

    async def stream(
        self,
        messages: tuple[Message, ...],
        tools: Sequence[ToolSpec],
        known: Known | None = None,
        *,
        first: int | None = None,
        extras: Callable[[ModelRequest], ModelRequest] = unchanged,
        on_text: Callable[[str, int], None] | None = None,
        on_usage: Callable[[Usage], None] | None = None,
        on_note: Callable[[str], None] | None = None,
    ) -> AsyncGenerator[PlanStep | Plan, None]:
        """Yields each step of the plan for `messages` as soon as it is complete; last, the plan.

        `known` are the schemas of earlier results that may be referred to, by number; the plan's
        own numbers begin with `first`, by default after those. `extras` amends each request,
        `on_text` receives each piece of text and its number of tokens, `on_usage` the usage of each
        request, `on_note` deviations from the settings. Closing the generator cancels the request.

        Raises: `PlanError` for a plan that is malformed or was cut off, with the text so far;
            what `ModelClient.generate` raises.
        """
        known = dict(known or {})

        def amended(request: ModelRequest) -> ModelRequest:
            return extras(replace(request, extra=self.extra) if self.extra else request)

        hooks = PlanHooks(amended, on_text, on_usage, on_note)
        job = _PlanRun(self, messages, tools, known, first or max(known, default=0) + 1, hooks)
        async with aclosing(job.steps()) as steps:
            async for step in steps:
                yield step
        yield job.plan()


class _PlanRun:
    """The writing of one plan."""

    def __init__(
        self,
        planner: Planner,
        messages: tuple[Message, ...],
        tools: Sequence[ToolSpec],
        known: Known,
        first: int,
        hooks: PlanHooks,
    ) -> None:
        self._planner = planner
        self._tools = tools
        self._known = known
        self._first = first
        self._hooks = hooks
        self._continues = False
        self._constrained = False
        self._grammar = planner.grammar
        self._most = planner.sampling.max_tokens or _MAX_TOKENS
        self._draft = PlanDraft(planner.model, messages, self._reader(), hooks)

    def plan(self) -> Plan:
        """The finished plan. Raises: `PlanError`."""
        try:
            if self._draft.cut:
                hint = f"raise max_tokens, or ask for less{self._bounds()}"
                raise PlanError(
                    f"the plan was cut off after {self._draft.tokens} tokens",
                    line=self._draft.text.count("\n") + 1,
                    hint=THOUGHT_HINT if self._draft.only_thought else hint,
                )
            if self._draft.only_thought:
                what = "the model thought, and wrote no plan"
                raise PlanError(what, hint=BOUND_THOUGHT_HINT)
            return self._draft.reader.close()
        except PlanError as error:
            error.written = self._draft.text
            raise

    def _bounds(self) -> str:
        """The bounds of values, where a grammar was in use."""
        if not self._constrained:
            return ""
        return f"; its grammar allows {self._grammar}, which `grammar` sets"

    async def steps(self) -> AsyncGenerator[PlanStep, None]:
        try:
            async with aclosing(self._constrained_steps()) as steps:
                async for step in steps:
                    yield step
            return
        except (BuildError, CapabilityError, ModelRequestError) as error:
            begun = bool(self._draft.text) or isinstance(error, PlanError)
            if self._planner.constrain != "auto" or begun:
                raise
            self._constrained = False
            self._note(f"the plan is not held to a grammar: {error}")
        async with aclosing(self._draft.write(self._sampling(self._most))) as steps:
            async for step in steps:
                yield step

    async def _constrained_steps(self) -> AsyncGenerator[PlanStep, None]:
        """Write the plan as `constrain` says.

        Raises: `BuildError` and `ModelError` where that is not possible.
        """
        mode = await self._mode()
        self._constrained = mode != "never"
        match mode:
            case "line":
                writer = self._by_line()
            case "plan":
                writer = self._whole_plan()
            case "never":
                writer = self._draft.write(self._sampling(self._most))
        async with aclosing(writer) as steps:
            async for step in steps:
                notes = reached_limits(step, self._grammar) if self._constrained else ()
                for note in notes:
                    self._note(note)
                yield step

    async def _mode(self) -> Mode:
        planner = self._planner
        capabilities = await planner.model.capabilities()
        self._continues = capabilities.continuation
        if capabilities.plan_form == COMPACT:  # it has learnt to ask for what is missing
            self._grammar = replace(planner.grammar, thought_chars=ASK_CHARS)
        if planner.constrain == "line" and not capabilities.continuation:
            raise CapabilityError(
                f"{planner.model.model} cannot go on with an unfinished answer, and so it cannot"
                " be held to a grammar line by line",
                hint="constrain='plan' takes one request",
            )
        if planner.constrain != "never" and capabilities.grammar:
            for note in loosened(self._tools, self._grammar):
                self._note(note)
        if planner.constrain != "auto":
            return planner.constrain
        if not capabilities.grammar:
            self._note(f"{planner.model.model} cannot be held to a grammar: plans are checked only")
            return "never"
        roomy = most_steps(self._tools) >= min(planner.limits.steps, _ENOUGH_STEPS)
        return "plan" if roomy or not capabilities.continuation else "line"

    async def _whole_plan(self) -> AsyncGenerator[PlanStep, None]:
        """One request; if it runs out of tokens, another one for the join."""
        most = min(self._planner.limits.steps, most_steps(self._tools))
        grammar = plan_grammar(self._tools, most, self._known, self._grammar, first=self._first)
        reserved = self._reserve() if self._continues else 0
        sampling = self._sampling(self._most - reserved)
        async with aclosing(self._draft.write(sampling, grammar)) as steps:
            async for step in steps:
                yield step
        if self._draft.cut and self._continues:
            self._draft.back_to_last_line(self._reader())
            async with aclosing(self._line(calls=False)) as steps:
                async for step in steps:
                    yield step

    async def _by_line(self) -> AsyncGenerator[PlanStep, None]:
        """One request for each line; the join, when steps or tokens run out."""
        draft = self._draft
        while not draft.reader.complete:
            before = len(draft.reader.steps)
            left = self._most - draft.tokens - self._reserve()
            calls = not draft.cut and left > 0 and before < self._planner.limits.steps
            async with aclosing(self._line(calls=calls)) as steps:
                async for step in steps:
                    yield step
            if draft.cut and calls:
                draft.back_to_last_line(self._reader())
            elif len(draft.reader.steps) == before:
                return  # the join, or a line outside every grammar

    def _line(self, *, calls: bool) -> AsyncGenerator[PlanStep, None]:
        """Write the next line: a call or the join, or only the join."""
        draft = self._draft
        written = draft.reader.steps
        number = written[-1].number + 1 if written else self._first
        limits = self._grammar
        # Where tokens run out the join has to be short: whole results, and few of them.
        limits = limits if calls else replace(limits, path_steps=0, results=_LAST_RESULTS)
        grammar = step_grammar(self._tools, draft.reader.known, number, limits, calls=calls)
        left = self._most - draft.tokens
        sampling = self._sampling(max(1, left - self._reserve() if calls else left), line=number)
        return draft.write(sampling, grammar)

    def _sampling(self, tokens: int, line: int = 0) -> Sampling:
        """`line` gives each line its own random numbers."""
        sampling = self._planner.sampling
        seed = None if sampling.seed is None else (sampling.seed + line) % _SEEDS
        return replace(sampling, max_tokens=tokens, seed=seed)

    def _reserve(self) -> int:
        return min(_JOIN_TOKENS, self._most // 2)

    def _reader(self) -> PlanReader:
        return PlanReader(self._tools, known=self._known, limits=self._planner.limits)

    def _note(self, text: str) -> None:
        if self._hooks.on_note is not None:
            self._hooks.on_note(text)
