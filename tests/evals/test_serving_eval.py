"""The serving evaluation without a server: traffic, systems and sums, in virtual time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import fmean, pstdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.serving.arrivals import arrivals
from evals.serving.evaluation import CASES, FULL, SATURATED, UNSATURATED
from evals.serving.failure import EvaluationError
from evals.serving.known import computed_tokens, known_parts, new_tokens
from evals.serving.lengths import API_ANSWER, CHAT_ANSWER, CHAT_PROMPT, TOOL_MS, TURNS
from evals.serving.plot import draw
from evals.serving.programs import Call, First, Output, Program, Tool, ancestors, size, sizes
from evals.serving.prose import Prose
from evals.serving.replay import Played, play
from evals.serving.report import table
from evals.serving.rows import equal_outputs, figures, latency_rows, percentile, round_rows
from evals.serving.server import Counters, read
from evals.serving.speed import Speed
from evals.serving.systems.catalogue import SYSTEMS
from evals.serving.systems.on_weft import (
    ANSWER_TOKENS_PER_S,
    PROMPT_TOKENS_PER_S,
    Knowledge,
    OnWeft,
)
from evals.serving.systems.plain import Plain
from evals.serving.traffic import KINDS, MOST_CONTEXT, Traffic
from weft.core.ports import Capabilities, ModelEvent, ModelRequest, TextDelta
from weft.core.values import Completion, Usage
from weft.serving.fleet import Fleet, FleetOptions
from weft.testing import FakeClock

TRAFFIC = Traffic(Prose(lambda text: [ord(letter) for letter in text]))
DOCUMENT = tuple(range(300))
PAGE = DOCUMENT[:100]
CHAIN = Program(
    "chain",
    "chain",
    0.0,
    (
        Call("one", ((1, 2), (3,)), 4),
        Tool("look", 2.0, (7, 7), ("one",)),
        Call("two", ((1, 2), (3,), Output("one"), Output("look")), 3),
    ),
)
FAN = Program(
    "fan",
    "fan_out",
    1.0,
    (
        Call("a", (PAGE, (1,)), 5, prefix="document"),
        Call("b", (PAGE, (2,)), 6, prefix="document"),
        Call("join", ((9,), Output("a"), Output("b")), 2),
    ),
)
RACE = Program(
    "race",
    "race",
    0.5,
    (
        Call("quick", ((1,),), 2, valid=False),
        Call("good", ((2,),), 5),
        Call("slow", ((3,),), 50),
        First("first", ("quick", "good", "slow")),
    ),
)
ROLES = Program(
    "roles",
    "pipeline",
    0.0,
    (
        Call("write", ((1, 1), DOCUMENT), 4),
        Tool("check", 5.0, (8,), ("write",)),
        Call("review", ((2, 2), DOCUMENT, Output("write"), Output("check")), 4),
    ),
)
ALL = (CHAIN, FAN, RACE, ROLES)


class TokenModel:
    """Writes a token a second, each the sum of what stands before it; takes any number at once."""

    model = "tokens"

    def __init__(self) -> None:
        self.requests: list[ModelRequest] = []
        self.prompts = 0
        self.written = 0

    async def capabilities(self) -> Capabilities:
        return Capabilities(token_ids=True, prompt_token_ids=True, priority=True)

    async def generate(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self.requests.append(request)
        ids = list(request.prompt_token_ids)
        self.prompts += len(ids)
        for _ in range(request.sampling.max_tokens or 0):
            await asyncio.sleep(1.0)
            ids.append(sum(ids) % 1_000)
            self.written += 1
            yield TextDelta("x", (ids[-1],))
        answer = tuple(ids[len(request.prompt_token_ids) :])
        usage = Usage(len(request.prompt_token_ids), len(answer), requests=1)
        yield Completion("x" * len(answer), "length", token_ids=answer, usage=usage)

    async def aclose(self) -> None:
        return

    async def clean(self) -> Counters:
        return Counters(
            prefix_cache_queries=self.prompts,
            generation_tokens=self.written,
            prompt_tokens=self.prompts,
        )


def played(
    programs: Sequence[Program], *, plain: bool = False, cancel: bool = True, in_flight: int = 64
) -> tuple[Played, TokenModel]:
    clock, model = FakeClock(), TokenModel()

    async def run() -> Played:
        if plain:
            return await play(programs, Plain(model, cancel=cancel), model)
        options = FleetOptions(in_flight=in_flight)
        fleet = Fleet([model], options, clock=clock)
        return await play(programs, OnWeft(fleet, Knowledge(cancel=cancel)), model)

    return clock.run(run()), model


def test_arrivals_are_bursty_and_end_with_the_span():
    times = arrivals(random.Random(3), 4_000, 100.0)
    gaps = [late - early for early, late in pairwise(times)]
    assert times[0] == 0.0
    assert times[-1] == pytest.approx(100.0)
    assert min(gaps) >= 0.0
    assert pstdev(gaps) / fmean(gaps) == pytest.approx(0.5**-0.5, rel=0.1)  # of a gamma's shape
    assert arrivals(random.Random(3), 1, 5.0) == [0.0]


@given(st.integers())
def test_lengths_keep_their_bounds(seed):
    source = random.Random(seed)
    assert 16 <= CHAT_PROMPT.draw(source) <= 512
    assert 8 <= CHAT_ANSWER.draw(source) <= 256
    assert 8 <= API_ANSWER.draw(source) <= 205
    assert 2 <= TURNS.draw(source) <= 16
    assert 100 <= TOOL_MS.draw(source) <= 5_000


def test_zipf_gives_small_numbers_most_often():
    drawn = [TURNS.draw(random.Random(seed)) for seed in range(2_000)]
    share = drawn.count(2) / len(drawn)
    assert share == pytest.approx(1 / sum(k**-1.1 for k in range(1, 16)), abs=0.04)


@given(st.integers(0, 10_000), st.integers(1, 40))
def test_programs_fit_the_server_and_wait_only_for_what_stands_before(seed, count):
    trace = TRAFFIC.trace(seed, count, 10.0)
    assert len({program.id for program in trace}) == len(trace) == count
    for program in trace:
        before: set[str] = set()
        tokens = sizes(program)
        for step in program.steps:
            assert set(step.after) <= before
            before.add(step.name)
        for call in program.calls:
            assert size(call.prompt, tokens) + call.max_tokens <= MOST_CONTEXT + 256
        assert len(before) == len(program.steps)


def test_a_seed_gives_one_trace_whatever_its_span():
    fast, slow, other = (TRAFFIC.trace(*of) for of in ((1, 40, 1.0), (1, 40, 50.0), (2, 40, 1.0)))
    assert [program.steps for program in fast] == [program.steps for program in slow]
    assert [program.arrival_s * 50 for program in fast] == pytest.approx(
        [program.arrival_s for program in slow]
    )
    assert [program.steps for program in fast] != [program.steps for program in other]
    assert {program.kind for program in fast} == set(KINDS)


def test_races_can_be_won():
    races = [p for p in TRAFFIC.trace(5, 100, 1.0) if p.kind == "race"]
    assert races
    assert all(any(call.valid for call in race.calls) for race in races)


def test_only_what_no_call_before_has_computed_is_new():
    assert new_tokens(CHAIN) == {"one": 3, "two": 2}
    assert computed_tokens(CHAIN) == 5
    assert computed_tokens(FAN) == 100 + 1 + 1 + (1 + 5 + 6)
    assert ancestors(ROLES)["review"] == {"write", "check"}
    assert known_parts(CHAIN) == []  # all of it is left over from the turn before
    (known,) = known_parts(ROLES)
    assert known.call.name == "review"
    assert known.pieces == ((2, 2), DOCUMENT, Output("write"))


def test_work_is_measured_at_the_speed_of_the_server():
    assert Speed(10.0, 2.0).seconds([CHAIN]) == pytest.approx(5 / 10 + 7 / 2)


@pytest.mark.parametrize("plain", [True, False])
def test_latency_counts_from_the_arrival_to_the_result(plain):
    found, _ = played(ALL, plain=plain)
    assert found.latencies_s == pytest.approx(
        {"chain": 4 + 2 + 3, "fan": 6 + 2, "race": 5, "roles": 4 + 5 + 4}
    )
    assert found.makespan_s == pytest.approx(13.0)
    assert found.record.chosen == {("race", "first"): "good"}
    assert found.used_tokens == 7 + 13 + 5 + 8
    assert found.backlog == 4


def test_all_systems_ask_the_same_and_get_the_same():
    plain, _ = played(ALL, plain=True, cancel=False)
    weft, _ = played(ALL)
    assert equal_outputs(weft, plain) == 1.0
    assert plain.record.outputs.keys() - weft.record.outputs.keys() == {("race", "slow")}
    changed = weft.record.outputs | {("fan", "a"): (0,)}
    other = replace(weft, record=replace(weft.record, outputs=changed))
    assert equal_outputs(other, plain) == pytest.approx(1 - 1 / len(changed))


@pytest.mark.parametrize("plain", [True, False])
def test_losers_stop_where_they_are_cancelled_and_else_write_to_their_end(plain):
    stopped, _ = played([RACE], plain=plain, cancel=True)
    wasted, model = played([RACE], plain=plain, cancel=False)
    assert figures(wasted)["wasted_tokens"][0] == 2 + 50
    assert model.written == 57
    assert figures(stopped)["wasted_tokens"][0] == 2 + 5
    assert wasted.latencies_s == stopped.latencies_s


def test_plain_requests_know_no_program_and_those_of_weft_do():
    _, plain = played(ALL, plain=True)
    assert {(r.program, r.cache_prefix, r.priority) for r in plain.requests} == {(None, None, 0)}
    _, weft = played([CHAIN])
    first, second = (request.program for request in weft.requests)
    assert first is not None
    assert second is not None
    assert first.id == second.id == "chain"
    calls_s = [3 / PROMPT_TOKENS_PER_S + 4 / ANSWER_TOKENS_PER_S]
    calls_s.append(2 / PROMPT_TOKENS_PER_S + 3 / ANSWER_TOKENS_PER_S)
    assert first.remaining == pytest.approx(sum(calls_s) + 2.0)
    assert first.work == pytest.approx(first.remaining - 2.0)
    assert second.remaining == pytest.approx(calls_s[1])


def test_a_race_counts_as_its_quickest_call():
    _, model = played([RACE])
    paths = [request.program.path for request in model.requests if request.program]
    assert paths[0] == pytest.approx(1 / PROMPT_TOKENS_PER_S + 2 / ANSWER_TOKENS_PER_S)


def test_the_next_prompt_is_warmed_while_a_tool_runs():
    _, model = played([ROLES])
    assert [request.sampling.max_tokens for request in model.requests] == [4, 1, 4]
    first, warming, second = (request.prompt_token_ids for request in model.requests)
    assert warming[:302] == (2, 2, *DOCUMENT)
    assert second[: len(warming)] == warming
    assert second[len(warming) :] == (8,)
    assert first[:2] == (1, 1)


def test_short_programs_overtake_when_the_server_is_bounded():
    long = [Program(f"long{n}", "chat", 0.0, (Call("answer", ((n,),), 40),)) for n in range(1, 5)]
    short = Program("short", "chat", 1.0, (Call("answer", ((9,),), 2),))
    found, _ = played([*long, short], in_flight=1)
    assert found.latencies_s["short"] == pytest.approx(39 + 2)


def test_counters_are_read_from_the_metrics_page():
    page = """
# TYPE vllm:prefix_cache_queries_total counter
vllm:prefix_cache_queries_total{engine="0",model_name="m"} 100.0
vllm:prefix_cache_queries_total{engine="1",model_name="m"} 11.0
vllm:prefix_cache_queries_created{engine="0"} 1.7e9
vllm:prefix_cache_hits_total{engine="0"} 40.0
vllm:generation_tokens_total{engine="0"} 7
vllm:prompt_tokens_total{engine="0"} 1e3
vllm:num_preemptions_total{engine="0"} 0
vllm:num_requests_running{engine="0"} 2
vllm:num_requests_waiting{engine="0"} 1
"""
    found = read(page)
    assert found.prefix_cache_queries == 111
    assert found.prompt_tokens == 1_000
    assert found.since(Counters(generation_tokens=3)).generation_tokens == 4
    with pytest.raises(EvaluationError, match="no prefix_cache_hits"):
        read(page.replace("prefix_cache_hits", "other"))


def test_ratios_are_those_of_one_round():
    quick, _ = played([RACE, FAN])
    slow = replace(quick, record=replace(quick.record, done_s={"race": 10.5, "fan": 17.0}))
    both = [{"plain": slow, "weft": quick}, {"plain": quick, "weft": quick}]
    rows = round_rows("agent_traffic", both)
    value = {(row.system, row.metric): row.value for row in rows}
    ratio = "mean_program_latency_s_ratio"
    assert value["weft", f"{ratio}_least"] == pytest.approx(6.5 / 13)
    assert value["weft", f"{ratio}_most"] == 1.0
    assert value["weft", ratio] == pytest.approx(0.75)
    assert value["weft", f"{ratio}_round_1"] == pytest.approx(6.5 / 13)
    assert value["weft", f"{ratio}_round_2"] == 1.0
    assert value["weft", "outputs_equal"] == 1.0
    assert value["plain", "rounds"] == 2
    assert ("plain", ratio) not in value


def test_five_rounds_of_both_cases_are_of_record():
    assert FULL.rounds == 5
    assert [case.name for case in CASES] == ["agent_traffic", "agent_traffic_unsaturated"]
    assert SATURATED.load > 2 > UNSATURATED.load


def test_percentiles_lie_within_the_samples():
    assert percentile([3.0], 99) == 3.0
    assert percentile([1.0, 2.0, 3.0], 50) == 2.0
    assert 2.9 < percentile([1.0, 2.0, 3.0], 99) <= 3.0


def test_the_table_and_the_plot_show_what_there_is(tmp_path):
    plain, _ = played(ALL, plain=True, cancel=False)
    weft, _ = played(ALL)
    rounds = [{"plain": plain, "weft": weft, "weft_no_cancel": plain}]
    rows = [
        *round_rows(SATURATED.name, [*rounds, *rounds]),
        *round_rows(UNSATURATED.name, [{"plain": weft, "weft": plain}]),
        *latency_rows(rounds),
    ]
    text = table(rows)
    assert text.count("weft, mean of plain's in each round: 1.00, 1.00\n") == 1
    assert "agent_traffic_unsaturated" in text
    assert "weft_no_cancel" in text
    assert "MISSED  agent_traffic weft mean_program_latency_s_ratio: 1.00 <= 0.70" in text
    assert "met     agent_traffic weft p99_program_latency_s_ratio" in text
    draw(rows, tmp_path / "plot.svg")
    assert "weft_no_cancel" in (tmp_path / "plot.svg").read_text("utf-8")


def test_every_mechanism_is_taken_away_and_tried_alone():
    assert {"plain", "plain_cancel", "weft"} < SYSTEMS.keys()
    for mechanism in ("order", "bound", "cancel", "prefix", "warm"):
        assert {f"weft_no_{mechanism}", f"only_{mechanism}"} < SYSTEMS.keys()
