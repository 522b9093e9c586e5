"""How plans are streamed from a model, in each of the ways in which it can be held."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from tests.planner.grammar.random_texts import Grammar
from weft.core.errors import CapabilityError, ModelRequestError, ModelUnavailable, PlanError
from weft.core.ports import Capabilities, ModelEvent, ModelRequest, Sampling, TextDelta
from weft.core.values import Completion, Message, ToolSpec, Usage
from weft.planner.grammar.limits import Constrain
from weft.planner.plan import Plan, PlanLimits, PlanStep
from weft.planner.planner import Planner
from weft.testing import FakeClock, FakeModel, Reply

ASKED = (Message("user", "How much?"),)
NUMBER = {"type": "number"}
TOOLS = (
    ToolSpec(
        "price",
        "",
        {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]},
        NUMBER,
    ),
    ToolSpec(
        "add",
        "",
        {"type": "object", "properties": {"a": NUMBER, "b": NUMBER}, "required": ["a", "b"]},
        NUMBER,
    ),
)
TEXT = '1. price(item="tea")\n2. add(a=$1, b=3)\n3. join($2)'
ABLE = Capabilities(structured_output=True, grammar=True, continuation=True)
HELD = Capabilities(structured_output=True, grammar=True)


@dataclass
class Written:
    """What came of one planning."""

    parts: list[tuple[float, PlanStep | Plan]] = field(default_factory=list)
    text: str = ""
    tokens: int = 0
    usage: Usage = field(default_factory=Usage)
    notes: list[str] = field(default_factory=list)
    error: Exception | None = None

    @property
    def plan(self) -> Plan:
        if self.error is not None:
            raise self.error
        last = self.parts[-1][1]
        assert isinstance(last, Plan)
        assert [part for _, part in self.parts[:-1]] == list(last.steps)
        return last


def write(planner: Planner, tools: tuple[ToolSpec, ...] = TOOLS, **given: Any) -> Written:
    """Stream a plan in virtual time."""
    clock = FakeClock()
    written = Written()

    def show(text: str, tokens: int) -> None:
        written.text += text
        written.tokens += tokens

    def spend(usage: Usage) -> None:
        written.usage += usage

    async def main() -> None:
        stream = planner.stream(
            ASKED, tools, on_text=show, on_usage=spend, on_note=written.notes.append, **given
        )
        async with aclosing(stream) as parts:
            async for part in parts:
                written.parts.append((clock.now(), part))

    try:
        clock.run(main())
    except (PlanError, CapabilityError, ModelRequestError, ModelUnavailable) as error:
        written.error = error
    return written


def in_lines(text: str) -> Callable[[ModelRequest], Reply]:
    """A model that writes one line of `text` for each request, behind what is there already."""
    lines = text.splitlines(keepends=True)

    def reply(request: ModelRequest) -> Reply:
        done = request.messages[-1].content if request.continues else ""
        return Reply(lines[done.count("\n")])

    return reply


def drawing(seed: int) -> Callable[[ModelRequest], Reply]:
    """A model that writes anything that its grammar allows."""
    source = random.Random(seed)

    def reply(request: ModelRequest) -> Reply:
        assert request.grammar is not None
        return Reply(Grammar(request.grammar).draw(source))

    return reply


def test_each_step_comes_as_soon_as_its_line_is_complete() -> None:
    model = FakeModel([Reply(TEXT, first_token_s=1.0, per_token_s=0.5)])
    written = write(Planner(model))
    assert written.plan.results[0].source == 2
    # Words: `1.`, `price(item="tea")`, `2.`: the newline comes with the word behind it.
    assert [at for at, _ in written.parts] == [2.0, 3.5, 4.5]
    assert written.text == TEXT
    assert written.tokens == written.usage.completion_tokens == 7
    assert written.usage.requests == 1


def test_a_model_without_grammars_writes_freely_and_it_is_said() -> None:
    model = FakeModel([f"Sure!\n{TEXT}"])
    written = write(Planner(model))
    assert [step.tool for step in written.plan.steps] == ["price", "add"]
    assert model.requests[0].grammar is None
    assert "cannot be held to a grammar" in written.notes[0]


def test_what_is_written_behind_the_join_is_not_waited_for() -> None:
    model = FakeModel([Reply(f"{TEXT}\nThat is all. " + "word " * 500, per_token_s=0.1)])
    written = write(Planner(model))
    assert written.parts[-1][0] < 2
    assert model.cancelled == 1
    # 7 are the plan, 1 showed that there is more, 2 came while the model might have ended.
    assert written.usage.completion_tokens == 10


@pytest.mark.parametrize("capabilities", [ABLE, HELD])
def test_auto_takes_one_grammar_for_the_whole_plan(capabilities: Capabilities) -> None:
    model = FakeModel([TEXT], capabilities=capabilities)
    assert len(write(Planner(model)).plan.steps) == 2
    (request,) = model.requests
    assert request.grammar is not None
    assert Grammar(request.grammar).holds(TEXT)
    assert not Grammar(request.grammar).holds(TEXT.replace("3)", '"3")'))


def many_results() -> tuple[ToolSpec, ...]:
    parameters = {"type": "object", "properties": {"value": {"const": 3}}}
    return tuple(ToolSpec(f"t{n}", "", parameters, {"const": n}) for n in range(40))


def test_auto_goes_line_by_line_where_one_grammar_cannot_hold_all_types() -> None:
    text = "1. t3()\n2. t1(value=$1)\n3. join($2)"
    model = FakeModel(in_lines(text), capabilities=ABLE)
    assert len(write(Planner(model), many_results()).plan.steps) == 2
    assert [request.messages[1:] for request in model.requests] == [
        (),
        (Message("assistant", "1. t3()\n"),),
        (Message("assistant", "1. t3()\n2. t1(value=$1)\n"),),
    ]
    second = model.requests[1].grammar
    assert second is not None
    assert Grammar(second).holds("2. t1(value=$1)\n")
    assert not Grammar(second).holds("2. t1(value=$2)\n")
    # Without continuation there is one grammar, of a plan with fewer steps.
    once = FakeModel([text], capabilities=HELD)
    assert len(write(Planner(once), many_results()).plan.steps) == 2
    (request,) = once.requests
    assert request.grammar is not None
    assert not Grammar(request.grammar).holds(text.replace("t3", "t4"))


def test_lines_that_bring_nothing_end() -> None:
    model = FakeModel(["# thinking\n"], capabilities=ABLE)
    written = write(Planner(model, constrain="line"))
    assert "without its join" in str(written.error)
    assert len(model.requests) == 1


def test_a_budget_that_is_all_but_spent_is_not_nibbled_away() -> None:
    model = FakeModel(in_lines(TEXT), capabilities=ABLE)
    planner = Planner(model, constrain="line")
    one = Sampling(max_tokens=1)
    written = write(planner, extras=lambda request: replace(request, sampling=one))
    assert "cut off" in str(written.error)
    assert len(model.requests) == 2


@pytest.mark.parametrize("constrain", ["plan", "line"])
def test_a_model_that_writes_anything_the_grammar_allows_writes_plans(constrain: Constrain) -> None:
    steps = 0
    for seed in range(12):
        model = FakeModel(drawing(seed), capabilities=ABLE)
        planner = Planner(
            model,
            constrain=constrain,
            limits=PlanLimits(steps=4),
            sampling=Sampling(max_tokens=100_000),
        )
        steps += len(write(planner).plan.steps)
    assert steps > 6


def test_lines_have_seeds_of_their_own() -> None:
    model = FakeModel(in_lines(TEXT), capabilities=ABLE)
    write(Planner(model, constrain="line", sampling=Sampling(max_tokens=90, seed=7)))
    seeds = [request.sampling.seed for request in model.requests]
    assert len(set(seeds)) == 3
    again = FakeModel(in_lines(TEXT), capabilities=ABLE)
    write(Planner(again, constrain="line", sampling=Sampling(max_tokens=90, seed=7)))
    assert [request.sampling.seed for request in again.requests] == seeds


def test_the_tokens_of_a_plan_are_counted_over_its_lines_and_kept_for_the_join() -> None:
    line = '{}. price(item="one two three four five six")\n'

    def reply(request: ModelRequest) -> Reply:
        done = request.messages[-1].content.count("\n") if request.continues else 0
        assert request.grammar is not None
        held = Grammar(request.grammar)
        if held.holds(line.format(done + 1)):
            return Reply(line.format(done + 1))
        return Reply(f"{done + 1}. join()")

    model = FakeModel(reply, capabilities=ABLE)
    written = write(Planner(model, constrain="line", sampling=Sampling(max_tokens=40)))
    # 40 tokens, 20 of them kept: two lines of eight, one that is cut off, and the join.
    assert len(written.plan.steps) == 2
    assert written.usage.requests == len(model.requests) == 4
    assert written.usage.completion_tokens <= 40
    last = model.requests[-1].grammar
    assert last is not None
    assert Grammar(last).holds("3. join($1, $2)")
    assert not Grammar(last).holds("3. join($1, $2, $1, $2, $1)")


def test_a_plan_that_runs_out_of_tokens_is_joined_where_the_model_can_go_on() -> None:
    def reply(request: ModelRequest) -> Reply:
        if request.continues:
            assert request.messages[-1].content == '1. price(item="tea")\n'
            return Reply("2. join($1)")
        return Reply('1. price(item="tea")\n2. price(item="a b c d e f g h i j k")\n3. join()')

    model = FakeModel(reply, capabilities=ABLE)
    written = write(Planner(model, sampling=Sampling(max_tokens=8)))
    assert len(written.plan.steps) == 1
    assert written.plan.results[0].source == 1
    assert written.usage.completion_tokens <= 8


class Trailing(FakeModel):
    """Ends with an empty piece, as servers do that tell the id of the token that ends."""

    async def generate(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        async with aclosing(super().generate(request)) as events:
            async for event in events:
                if isinstance(event, Completion):
                    yield TextDelta("", (2,))
                yield event


def test_an_empty_piece_behind_the_join_is_its_end() -> None:
    lines = in_lines('1. price(item="tea")\n2. join($1)')
    long = Reply('1. price(item="tea")\n2. price(item="a b c d e f g h i j k")\n3. join()')
    model = Trailing(
        lambda request: lines(request) if request.continues else long, capabilities=ABLE
    )
    written = write(Planner(model, sampling=Sampling(max_tokens=8)))
    assert len(written.plan.steps) == 1
    assert model.cancelled == 0
    assert written.usage.prompt_tokens > 0


@pytest.mark.parametrize("capabilities", [HELD, Capabilities()])
def test_a_plan_that_was_cut_off_says_so(capabilities: Capabilities) -> None:
    model = FakeModel([TEXT], capabilities=capabilities)
    written = write(Planner(model, sampling=Sampling(max_tokens=4)))
    assert isinstance(written.error, PlanError)
    assert "cut off after 4 tokens" in str(written.error)
    assert written.error.written == written.text
    assert [step for _, step in written.parts] != []


def test_an_error_comes_with_what_was_written_and_behind_the_steps_before_it() -> None:
    text = '1. price(item="tea")\n2. nothing()\n3. join()'
    model = FakeModel([Reply(text, per_token_s=1.0)])
    written = write(Planner(model))
    assert isinstance(written.error, PlanError)
    assert (written.error.line, written.error.step) == (2, 2)
    assert text.startswith(written.error.written)
    assert [step.tool for _, step in written.parts if isinstance(step, PlanStep)] == ["price"]
    assert model.cancelled == 1
    assert written.usage.completion_tokens == written.tokens > 0


def test_closing_the_stream_cancels_the_request() -> None:
    model = FakeModel([Reply(TEXT, per_token_s=1.0)], capabilities=ABLE)

    async def main() -> None:
        stream = Planner(model).stream(ASKED, TOOLS)
        assert isinstance(await anext(stream), PlanStep)
        await stream.aclose()
        assert (model.running, model.cancelled) == (0, 1)

    FakeClock().run(main())


def test_a_stream_that_breaks_off_is_no_plan() -> None:
    written = write(Planner(FakeModel([Reply(TEXT, break_after_tokens=4)])))
    assert isinstance(written.error, ModelUnavailable)
    # Nobody told how long the prompt was: it is estimated.
    assert written.usage == Usage(prompt_tokens=3, completion_tokens=4, requests=1)


def test_what_the_model_cannot_do_is_refused_unless_it_is_left_open() -> None:
    for constrain in ("plan", "line"):
        model = FakeModel([TEXT], capabilities=Capabilities())
        assert isinstance(write(Planner(model, constrain=constrain)).error, CapabilityError)
    model = FakeModel([TEXT], capabilities=HELD)
    assert "line" in str(write(Planner(model, constrain="line")).error)


def test_a_grammar_that_the_server_refuses_is_left_out_where_that_is_left_open() -> None:
    def reply(request: ModelRequest) -> Reply:
        refused = ModelRequestError("Invalid grammar")
        return Reply(TEXT) if request.grammar is None else Reply(error=refused)

    written = write(Planner(FakeModel(reply, capabilities=ABLE)))
    assert len(written.plan.steps) == 2
    assert "Invalid grammar" in written.notes[0]
    held = write(Planner(FakeModel(reply, capabilities=ABLE), constrain="plan"))
    assert isinstance(held.error, ModelRequestError)


def test_a_tool_that_no_grammar_can_hold_is_named_or_leaves_the_plan_unheld() -> None:
    odd = {"type": "object", "properties": {"x": {"not": {}}}, "required": ["x"]}
    tools = (*TOOLS, ToolSpec("odd", "", odd))
    written = write(Planner(FakeModel([TEXT], capabilities=ABLE)), tools)
    assert len(written.plan.steps) == 2
    assert "odd" in written.notes[0]


def test_a_later_round_begins_with_its_number() -> None:
    model = FakeModel(["5. add(a=$2, b=1)\n6. join($5)"], capabilities=ABLE)
    plan = write(Planner(model), known={2: NUMBER}, first=5).plan
    assert plan.steps[0].number == 5
    behind = FakeModel(["3. add(a=$2, b=1)\n4. join($3)"], capabilities=ABLE)
    assert write(Planner(behind), known={2: NUMBER}).plan.steps[0].number == 3


def test_the_caller_adds_what_only_it_knows() -> None:
    model = FakeModel(in_lines(TEXT), capabilities=ABLE)
    planner = Planner(model, constrain="line")
    written = write(planner, extras=lambda request: replace(request, priority=5))
    assert len(written.plan.steps) == 2
    assert [request.priority for request in model.requests] == [5, 5, 5]
