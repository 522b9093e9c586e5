"""The frame of the evaluation: cases, counting, loops, replays, rows. No model but a tiny one."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch", reason="the decoders need weft[local]")

from evals.engine.rows import Lookup, Row
from evals.planning.effort import Skipped
from evals.speculative import caches, local, sizes, spec_bench
from evals.speculative.beside import REASONS, beside
from evals.speculative.cases import AGENTS, CASES
from evals.speculative.cases.prompt import Prompt
from evals.speculative.cases.specbench import TASKS
from evals.speculative.figures import PLAIN, method_rows, plain_rows
from evals.speculative.looping import distinct, repeated
from evals.speculative.replay import replayed
from evals.speculative.rounds import Size
from evals.speculative.sections import SECTIONS
from evals.speculative.statistics import interval
from evals.speculative.systems import systems
from evals.speculative.taken import Taken, Together
from weft.core.values import Message
from weft.decoding.speculative.draft import DraftTree
from weft.decoding.speculative.drafters.ngram.lookup import LookupDrafter
from weft.decoding.speculative.presets import NAMES

tokens = st.lists(st.integers(0, 3), max_size=60)


@pytest.mark.parametrize("case", AGENTS)
def test_the_cases_of_agents_are_the_same_every_time(case: str) -> None:
    first, again = CASES[case](6), CASES[case](6)
    assert first == again
    assert len({prompt.id for prompt in first}) == 6
    assert len({prompt.messages[-1].content for prompt in first}) == 6
    assert list(CASES[case](3)) == list(first[:3])
    assert all(prompt.messages[-1].role == "user" for prompt in first)


@pytest.mark.parametrize("case", ["agent_quoting", "agent_edits"])
def test_what_is_shown_is_not_what_is_asked(case: str) -> None:
    for prompt in CASES[case](10):
        shown, answer, asked = (message.content for message in prompt.messages)
        assert asked not in shown
        assert answer not in asked


def test_forms_and_plans_are_held() -> None:
    assert all(prompt.schema for prompt in CASES["agent_json"](2))
    assert all(prompt.grammar for prompt in CASES["agent_plans"](2))
    assert all(prompt.free for prompt in CASES["agent_quoting"](5))


def test_benchmark_prompts_are_spread_over_their_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEFT_DATA", str(tmp_path))
    with pytest.raises(Skipped):
        CASES["qa"](2)
    (tmp_path / "specbench").mkdir()
    rows = [{"question_id": n, "category": "qa", "turns": [f"q{n}"]} for n in range(10)]
    rows += [{"question_id": 10 + n, "category": "coding", "turns": ["c", "d"]} for n in range(4)]
    lines = "\n".join(json.dumps(row) for row in rows)
    (tmp_path / "specbench" / "question.jsonl").write_text(lines, "utf-8")
    assert [prompt.id for prompt in CASES["qa"](2)] == ["qa-2", "qa-7"]
    assert [prompt.id for prompt in CASES["qa"](10)] == [f"qa-{n}" for n in range(10)]
    (prompt,) = CASES["mt_bench"](1)
    assert prompt.messages == (Message("user", "c"),)


@given(tokens)
def test_a_text_written_twice_is_all_repeated(text: list[int]) -> None:
    if len(text) >= 8:
        assert repeated(text + text) == 1.0
    assert 0.0 <= repeated(text) <= 1.0
    assert 0.0 <= distinct(text) <= 1.0


def test_a_text_without_repetition() -> None:
    assert repeated(list(range(40))) == 0.0
    assert distinct(list(range(40))) == 1.0
    assert distinct([1] * 10) == pytest.approx(1 / 8)
    assert repeated([9, *range(8), 50, *range(8)]) == pytest.approx(16 / 18)


@given(tokens, tokens, st.integers(0, 9))
def test_a_replay_counts_what_decoding_would_have_taken(
    prompt: list[int], text: list[int], most: int
) -> None:
    drafter = LookupDrafter()
    drafter.extend(prompt)
    counters = replayed(drafter, text, most)
    assert counters.tokens == len(text)
    assert counters.accepted + counters.forwards == counters.tokens
    assert counters.forwards <= len(text)
    if not most:
        assert counters.forwards == len(text)


class Knowing:
    """Drafts the text itself."""

    name = "knowing"

    def __init__(self, text: Sequence[int]) -> None:
        self._left = list(text)

    def extend(self, tokens: Sequence[int]) -> None:
        assert list(tokens) == self._left[: len(tokens)]
        del self._left[: len(tokens)]

    def propose(self, most: int) -> DraftTree:
        return DraftTree.chain(self._left[:most])


def test_a_replay_of_one_who_knows_takes_a_pass_for_each_draft() -> None:
    assert replayed(Knowing(range(20)), range(20), 4).forwards == 4
    assert replayed(Knowing(range(20)), range(20), 30).forwards == 1


def test_the_interval_is_around_the_median() -> None:
    draw = random.Random(3)
    samples = [draw.gauss(2.0, 0.3) for _ in range(40)]
    low, high = interval(samples)
    assert min(samples) <= low <= median(samples) <= high <= max(samples)
    assert high - low < 0.4
    assert interval([1.5]) == (1.5, 1.5)


def taken(tokens: Sequence[int], forwards: int, seconds: float, drafts: int = 0) -> Taken:
    accepted = len(tokens) - forwards
    return Taken(tuple(tokens), forwards, seconds, accepted=accepted, draft_forwards=drafts)


def test_the_rows_of_a_method() -> None:
    plain = [taken(range(10), 10, 2.0), taken(range(20), 20, 4.0)]
    fast = [
        taken(range(10), 5, 1.0, drafts=3),
        taken([*range(19), 99], 10, 1.0, drafts=3),
    ]
    figures = Lookup([*plain_rows("c", plain), *method_rows("c", "m", plain, fast)])
    assert figures("c", PLAIN, "tokens_per_target_forward") == 1.0
    assert figures("c", PLAIN, "tokens_per_s") == 5.0
    assert figures("c", "m", "identical_outputs") == 0.5
    assert figures("c", "m", "tokens_per_target_forward") == 2.0
    assert figures("c", "m", "accepted_length") == 2.0
    assert figures("c", "m", "draft_forwards_per_token") == 0.2
    assert figures("c", "m", "wall_ratio") == 3.0
    assert figures("c", "m", "wall_ratio_total") == 3.0


def test_depths_are_added_up_over_answers() -> None:
    answers = [
        Taken((1,), 1, 1.0, tested=(4, 2), held=(2, 1)),
        Taken((1,), 1, 1.0, tested=(4,), held=(4,)),
    ]
    assert Together(answers).chances == [6 / 8, 1 / 2]


def test_texts_that_loop_are_counted_apart() -> None:
    plain = [taken([1] * 20, 20, 1.0), taken(range(20), 20, 1.0)]
    fast = [taken([1] * 20, 2, 1.0), taken(range(20), 10, 1.0)]
    figures = Lookup([*plain_rows("c", plain), *method_rows("c", "m", plain, fast)])
    assert figures("c", PLAIN, "looping") == 1
    assert figures("c", "m", "tokens_per_target_forward_no_loops") == 2.0


def test_a_warm_cache_never_holds_the_prompts_own_answer() -> None:
    texts = [caches.Written([90, 91], list(range(10 * n, 10 * n + 10))) for n in range(4)]
    for own, shared in zip(texts, caches._others(texts), strict=True):
        assert len(shared) == 3
        assert own.answer[0] not in shared.trie.root.children


def test_siblings_that_write_alike_help_when_they_are_remembered() -> None:
    answer = [5, 3, 8, 1, 9, 2, 7, 4]
    texts = [caches.Written([90, 91, n], answer) for n in range(3)]
    figures = Lookup(caches.case_rows("c", texts))
    cold = figures("c", "suffix:16 (cold)", "tokens_per_target_forward")
    warm = figures("c", "suffix:16 (warm)", "tokens_per_target_forward")
    assert cold == 1.0
    assert warm is not None
    assert warm > 1.5


def test_every_section_has_its_module() -> None:
    for name in SECTIONS.names:
        assert callable(SECTIONS.module(name).rows)
    with pytest.raises(Skipped, match="there is no"):
        SECTIONS.module("nowhere")


def test_a_section_that_is_skipped_leaves_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "MODEL", "no-such-model")
    [(name, (row,))] = SECTIONS.found_by(["local"], quick=True)
    assert (name, row.value) == ("local", None)
    assert "no-such-model" in row.metric


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two short prompts, one of them held to a schema."""
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
    turns = (Message("user", "the quick brown fox jumps over the quick brown"),)
    monkeypatch.setitem(CASES, "agent_quoting", lambda _: [Prompt("a", turns)])
    monkeypatch.setitem(CASES, "agent_json", lambda _: [Prompt("b", turns, schema)])


@pytest.mark.usefixtures("few")
def test_decoders_are_measured_beside_plain_decoding(tiny_path: Path) -> None:
    wanted = [each for each in systems() if each.name in ("lookup", "suffix", "medusa")]
    size = Size(1, 24, back=True)
    cases = ("agent_quoting", "agent_json")
    rows = asyncio.run(local.measured(tiny_path, wanted, cases, size))
    figures = Lookup(rows)
    for case in (*cases, "agents"):
        for name in ("lookup", "suffix"):
            assert figures(case, name, "identical_outputs") == 1.0
            passes = figures(case, name, "tokens_per_target_forward")
            plain = figures(case, PLAIN, "tokens_per_target_forward")
            assert passes is not None
            assert plain is not None
            assert passes >= plain - 1e-9
            assert figures(case, name, "wall_ratio") is not None
    assert figures("agent_quoting", PLAIN, "tokens_per_target_forward") == 1.0
    assert [row for row in rows if row.system == "medusa" and row.metric.startswith("skipped")]
    assert "lookup" in local.table(rows)
    assert "skipped" in local.table(rows)


def test_every_decoder_is_in_the_table_of_spec_bench_or_said_to_be_missing(tiny_path: Path) -> None:
    asked = {
        task: [Prompt(f"{task}-{n}", (Message("user", f"{task} {n}"),)) for n in range(2)]
        for task in TASKS[:2]
    }
    extent = spec_bench.Extent(2, 1, 6)
    rows = asyncio.run(spec_bench.measured(tiny_path, asked, list(systems()), extent))
    figures = Lookup(rows)
    missing = {row.system for row in rows if row.metric.startswith("skipped: ")}
    for name in NAMES:
        cases = [*asked, spec_bench.TOTAL]
        there = [figures(case, name, "tokens_per_target_forward") for case in cases]
        assert (None in there) == (name in missing), name
    assert figures("mt_bench", "lookup", "prompts") == 2
    assert figures(spec_bench.TOTAL, "lookup", "prompts") == 4
    assert figures(spec_bench.TOTAL, "self_draft", "prompts") == 2
    assert figures(spec_bench.TOTAL, "lookup", "identical_outputs") == 1.0
    assert len({(row.case, row.system, row.metric) for row in rows}) == len(rows)
    assert all(name in spec_bench.table(rows) for name in NAMES)


def test_accepted_lengths_stand_beside_the_published_ones_with_a_reason() -> None:
    assert set(REASONS) <= set(NAMES)
    table = beside([Row("agents", "lookup", "accepted_length", 3.14159, "tokens")])
    (line,) = [line for line in table.splitlines() if line.startswith("| lookup |")]
    assert "| 3.14 | 1.75: Spec-Bench" in line


def test_larger_models_are_measured_where_they_are(
    tiny_path: Path, few: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    [larger, pair] = sizes.rows(quick=True)
    assert (larger["case"], pair["case"]) == (sizes.LARGER, sizes.TARGET)
    assert larger["metric"].startswith("skipped: ")
    monkeypatch.setattr(sizes, "locate", lambda _: tiny_path)
    figures = Lookup([Row(**row) for row in sizes.rows(quick=True)])
    case = f"agent_quoting, {sizes.LARGER}"
    assert figures(case, "lookup", "identical_outputs") == 1.0
