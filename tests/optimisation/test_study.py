"""Studies of a planted workflow: what they find, what they may spend, and how they go on."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

import weft
from tests.optimisation.killed_study import RUN
from tests.optimisation.studies import FLOW, flow, named, planted, rows
from weft.core.events import NodeFinished
from weft.core.ids import RunId
from weft.errors import BuildError, InputError, UnknownReference
from weft.optimisation.candidates import Candidate, Proposal, SearchState
from weft.optimisation.edits import SetPrompt
from weft.optimisation.optimise import read_study, replay_study
from weft.optimisation.options import EditOption
from weft.optimisation.result import StudyResult
from weft.testing import FakeModel

KILLED = Path(__file__).with_name("killed_study.py")


def study(model: FakeModel, count: int = 120, **settings: Any) -> StudyResult:
    given: dict[str, Any] = {"budget": 3_000, **settings}
    return weft.optimise_sync(flow(), rows(count), "exact", models=named(model), **given)


def finding(result: StudyResult) -> dict[str, Any]:
    """All of a result that does not depend on clocks."""
    data = result.plain()
    for member in (data["baseline"], data["best"], *data["front"]):
        member["figures"] = [each for each in member["figures"] if each["objective"] != "latency"]
    return {name: value for name, value in data.items() if name not in ("wall_s", "run")}


def test_a_planted_improvement_is_found_and_applied() -> None:
    model = planted()
    result = study(model, 160)
    assert result.verdict.kind == "improved", result.verdict.why
    assert {edit.knob for edit in result.best.edits} == {"answer.prompt", "answer.schema_order"}
    assert result.front[0] == result.best
    figure = result.best.figure("quality")
    assert figure is not None
    assert (figure.source, figure.change > 0.3, figure.low > 0.2) == ("held-out", True, True)
    assert result.spent.calls == len(model.requests)
    assert set(result.spend) == {"search", "race", "held-out"}
    assert len(result.won) > len(result.lost)
    better = result.best.apply(flow())
    assert better.document.nodes["answer"].prompt.startswith("Think")
    assert "+    prompt: Think" in result.diff
    assert StudyResult.read(result.to_json()) == result


def test_without_headroom_the_workflow_comes_back_as_it_was() -> None:
    result = study(planted({"base": 0.5, "think": 0.0, "order": 0.0}))
    assert result.verdict.kind in ("no_headroom", "not_shown")
    assert result.best == result.baseline
    assert not result.best.edits_data
    assert result.best.apply(flow()).document == flow().document


def test_an_edit_that_gains_on_canaries_is_banned() -> None:
    """The better prompt is "right" on canaries as well: what gains there gains by the metric."""
    hacked = [{"id": f"c{n}", "question": f"q{1_000 + n}", "expected": "so"} for n in range(40)]

    def fooled(case: Any, outputs: Any) -> bool:
        return bool(outputs["answer"] != "no")

    result = weft.optimise_sync(
        flow(),
        rows(160),
        fooled,
        models=named(planted()),
        budget=4_000,
        canaries=hacked,
    )
    assert result.splits["canaries"] == 40
    assert "canaries" in result.spend
    assert result.verdict.kind != "improved"


def test_latency_is_recorded_time() -> None:
    result = study(planted(), goal="latency", keep={"quality": 0.05, "cost_usd": 1.0})
    assert result.improve == "latency"
    assert all(figure.value is not None for figure in result.baseline.figures)
    assert (result.baseline.scores["p95_s"] or 0) > 0


def test_a_study_is_recorded_read_and_replayed_without_a_call(tmp_path: Path) -> None:
    place, model = str(tmp_path / "runs.sqlite"), planted()
    result = study(model, journal=place)
    made = len(model.requests)
    assert result.run
    assert read_study(journal=place) == result
    again = asyncio.run(replay_study(result.run, flow(), journal=place))
    assert finding(again) == finding(result)
    assert len(model.requests) == made
    journal = weft.open_journal(place)
    assert [each.standing for each in journal.runs()] == ["succeeded"]
    journal.close()
    with pytest.raises(InputError, match="has succeeded"):
        study(model, journal=place, resume=result.run)


def test_a_second_study_on_the_same_held_out_cases_is_a_second_look(tmp_path: Path) -> None:
    place = str(tmp_path / "runs.sqlite")
    looks = [study(planted(), journal=place, seed=seed).verdict.looks for seed in (0, 1)]
    assert looks == [1, 2]
    assert study(planted(), 124, journal=place).verdict.looks == 1


def test_a_study_goes_on_with_its_own_data_only(tmp_path: Path) -> None:
    place, studies, left = str(tmp_path / "runs.sqlite"), list[Any](), [60]

    def stop_soon() -> None:
        left[0] -= 1
        if left[0] == 0:
            studies[0].stop()

    model = planted(on_call=stop_soon)
    interrupted = study(model, journal=place, watch=studies.append)
    assert interrupted.verdict.kind == "unfinished"
    assert interrupted.best == interrupted.baseline
    with pytest.raises(InputError, match="other data"):
        study(model, 124, journal=place, resume=interrupted.run)
    other = weft.loads(FLOW.replace("Facts about", "All about"))
    with pytest.raises(InputError, match="workflow of the study"):
        weft.optimise_sync(other, models=named(model), journal=place, resume=interrupted.run)
    with pytest.raises(InputError, match="not ended"):
        read_study(journal=place)
    result = study(model, journal=place, resume=interrupted.run)
    whole = planted()
    assert finding(result) == finding(study(whole))
    assert len(model.requests) == len(whole.requests)


TOOLS = """\
import os, weft

def answer(question: str, hint: str) -> str:
    with open("calls.txt", "a") as file:
        file.write(f"{question}\\n")
    if os.environ.get("WEFT_TEST_DIES") == question:
        os.kill(os.getpid(), 9)
    right = hint == "look" or int(question) % 3 == 0
    return question if right else "no"
"""
TOOL_FLOW = """\
name: looks
inputs: {question: string}
nodes:
  hint: {value: guess}
  answer: {call: "./tools.py:answer", with: {question: "{{ question }}", hint: "{{ hint }}"}}
outputs: {answer: "{{ answer }}"}
evaluation: {data: rows.jsonl, metrics: {right: exact}}
optimise: {budget: 100, knobs: {hint: {optional: look}}}
"""


def test_the_command_line_resumes_and_replays_a_study(tmp_path: Path) -> None:
    """A workflow in a file, without any model; its study dies, is resumed, and is replayed."""
    (tmp_path / "tools.py").write_text(TOOLS, encoding="utf-8")
    (tmp_path / "looks.yaml").write_text(TOOL_FLOW, encoding="utf-8")
    lines = [
        json.dumps({"id": f"{n}", "question": f"{n}", "expected": f"{n}", "split": split})
        for n in range(100)
        for split in ["dev" if n % 2 else "held_out"]
    ]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines), encoding="utf-8")
    env = {**os.environ, "WEFT_JOURNAL": str(tmp_path / "runs.sqlite")}

    def run(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *words]
        own = {**env, **more}
        return subprocess.run(command, cwd=tmp_path, env=own, capture_output=True, text=True)

    text = "import weft; weft.optimise_sync(weft.load('looks.yaml'), run='looking')"
    assert run("-c", text, WEFT_TEST_DIES="9").returncode == -signal.SIGKILL
    resumed = run("-m", "weft", "resume", "looking")
    assert resumed.returncode == 0, resumed.stderr
    assert resumed.stdout.startswith("improved")
    assert "look" in resumed.stdout
    assert "of 100 model calls" in resumed.stderr
    calls = (tmp_path / "calls.txt").read_text(encoding="utf-8").split()
    replayed = run("-m", "weft", "replay", "looking", WEFT_TEST_DIES="1")
    assert replayed.returncode == 0, replayed.stderr
    assert replayed.stdout == resumed.stdout.replace("run looking", "not recorded")
    assert (tmp_path / "calls.txt").read_text(encoding="utf-8").split() == calls
    again = run("-m", "weft", "resume", "looking")
    assert again.returncode == 0
    assert "nothing is left" in again.stderr


@pytest.mark.parametrize("seed", range(2))
def test_killed_anywhere_it_finds_the_same_and_repeats_no_finished_call(
    tmp_path: Path, seed: int
) -> None:
    survives(tmp_path, seed, kills=3)


def survives(folder: Path, seed: int, kills: int) -> None:
    """Kill a study again and again, resume it, and compare with one that was left alone."""
    random = Random(seed)
    place, calls = str(folder / "runs.sqlite"), folder / "calls.txt"
    whole = planted(salt=f"{seed}")
    expected = study(whole, 80, budget=1_500)
    for _ in range(kills):
        after = random.randint(1, max(2, len(whole.requests) // kills))
        assert died(folder, place, seed, after)
    assert not died(folder, place, seed, 0)
    assert finding(read_study(journal=place)) == finding(expected)
    made = calls.read_text(encoding="utf-8").split()
    under_way = len(made) - len(whole.requests)
    assert 0 <= under_way <= kills * 16, "only calls under way are made again"
    journal = weft.open_journal(place)
    ends = Counter(
        each.record.digest
        for each in journal.records(RunId(RUN))
        if isinstance(each.record, NodeFinished) and each.record.digest
    )
    journal.close()
    assert set(ends.values()) == {1}, "nothing that had finished is done again"


def died(folder: Path, place: str, seed: int, after: int) -> bool:
    """Whether the process died, which kills itself during so many calls from now (0: never)."""
    words = [sys.executable, str(KILLED), place, f"{seed}", f"{after}"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True)
    assert ended.returncode in (0, -signal.SIGKILL), ended.stderr
    return ended.returncode != 0


def test_ctrl_c_ends_with_the_front_so_far(tmp_path: Path) -> None:
    place, left = str(tmp_path / "runs.sqlite"), [150]

    def interrupt() -> None:
        left[0] -= 1
        if left[0] == 0:
            signal.raise_signal(signal.SIGINT)

    result = study(planted(on_call=interrupt), journal=place)
    assert result.verdict.kind == "unfinished"
    assert result.spent.calls > 0
    ended = study(planted(), journal=place, resume=result.run)
    assert finding(ended) == finding(study(planted()))


@pytest.mark.parametrize("seed", range(12))
def test_no_budget_is_overrun(seed: int) -> None:
    keeps_its_budget(seed)


@pytest.mark.slow
def test_no_budget_of_two_hundred_studies_is_overrun() -> None:
    for seed in range(200):
        keeps_its_budget(seed)


def keeps_its_budget(seed: int) -> None:
    """A random study of a random model: calls and tokens stay below the limits, but for those of
    calls under way when they were reached.
    """
    random = Random(seed)
    gains = {name: random.random() / 2 for name in ("base", "think", "order")}
    model, slots = planted(gains, f"{seed}"), random.choice((1, 4, 16))
    calls, tokens = random.randint(1, 500), random.choice((None, random.randint(10, 3_000)))
    limits = {"calls": calls} | ({} if tokens is None else {"tokens": tokens})
    result = study(model, random.choice((40, 60)), budget=limits, slots=slots, seed=seed)
    assert len(model.requests) <= calls
    assert result.spent.calls <= calls
    if tokens is not None:
        most = 40
        assert result.spent.tokens <= tokens + slots * most
    assert result.verdict.kind != "unfinished"


class Rewriter:
    """Proposes one prompt that it asks a model for, after a look at some runs."""

    def __init__(self, context: Any, knobs: Any, *, looks: int = 2) -> None:
        self._context, self._looks = context, looks
        self.seen: list[Any] = []
        assert "answer.prompt" in knobs

    calls = 20

    async def propose(self, state: SearchState) -> Proposal:
        context, before = self._context, self._context.calls
        self.seen += await context.observe(state.best, context.train[: self._looks])
        text = await context.ask("A better prompt?", attempt=0)
        option = EditOption.of(
            [SetPrompt(node="answer", prompt=text)], "asked", "the model says so"
        )
        candidate: Candidate = state.best.replace("answer.prompt", option)
        return Proposal([candidate], context.calls - before)


def test_proposers_see_training_cases_and_ask_once(tmp_path: Path) -> None:
    asked = FakeModel(lambda _: "Think: {{ question }} by {{ facts }}", model="author")
    made: list[Rewriter] = []

    def rewriter(context: Any, knobs: Any) -> Rewriter:
        made.append(Rewriter(context, knobs))
        return made[-1]

    place, model = str(tmp_path / "runs.sqlite"), planted()
    text = FLOW.replace('["Think, then answer {{ question }} by {{ facts }}"]', "true")
    result = weft.optimise_sync(
        weft.loads(text),
        rows(160),
        "exact",
        models=named(model),
        budget=3_000,
        journal=place,
        proposers=[rewriter],
        proposer_model=asked,
    )
    assert len(asked.requests) == 1
    assert result.verdict.kind == "improved"
    assert any(edit.why == "the model says so" for edit in result.best.edits)
    assert result.proposers[0].name == "rewriter"
    assert result.spend["proposals"].calls == result.proposers[0].calls
    assert result.spent.calls == len(model.requests) + len(asked.requests)
    seen = made[0].seen[0]
    assert seen.case.split == "train"
    nodes = {node.node: node for node in seen.nodes}
    assert nodes["answer"].needs == ("facts",)
    assert nodes["answer"].inputs["facts"] == nodes["facts"].value
    assert nodes["answer"].prompt.endswith(f"by {nodes['facts'].value}")
    again = asyncio.run(
        replay_study(result.run, weft.loads(text), journal=place, proposers=[rewriter])
    )
    assert finding(again) == finding(result)
    assert len(asked.requests) == 1


def test_mistakes_are_named() -> None:
    model = planted()
    with pytest.raises(BuildError, match="no proposer 'no_such'"):
        study(model, proposers=["no_such"])
    with pytest.raises(InputError, match="no figure 'speed'"):
        study(model, keep={"speed": 1})
    with pytest.raises(InputError, match="is no budget"):
        study(model, budget="2 apples")
    with pytest.raises(InputError, match="too few cases"):
        study(model, 8)
    with pytest.raises(UnknownReference):
        weft.optimise_sync(flow(), rows(80), "exact", models={"big": model})
    assert not model.requests


def test_a_study_refuses_a_candidate_that_shows_a_held_out_case() -> None:
    leaking = FLOW.replace("Think, then answer", "q1 is a1. Think, then answer")
    result = weft.optimise_sync(
        weft.loads(leaking), rows(120), "exact", models=named(planted()), budget=3_000
    )
    (leak,) = result.leaks
    assert (leak.place, leak.case, leak.split) == ("set_prompt answer", "q1", "held_out")
    assert not any("q1 is a1" in member.diff for member in (*result.front, result.best))
