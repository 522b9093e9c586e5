"""Questions are recorded like workflows: replayed offline, carried elsewhere, gone on with."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any, TypeVar

import pytest

import weft
from weft.core.calls import ModelAnswered, ModelCalled, ToolReturned
from weft.core.errors import BuildError, InputError, ModelUnavailable, ReasoningError
from weft.core.ids import RunId
from weft.core.ports import Capabilities, ModelRequest
from weft.testing import FakeClock, FakeModel, FakeTools, MemoryJournal, Reply
from weft.workflow.apps.ask import answer_of_run
from weft.workflow.history.cassette_file import read_cassette, write_cassette
from weft.workflow.history.fork import fork_run
from weft.workflow.history.recorded_workflow import rebuild_or_read_unit, rebuild_unit
from weft.workflow.history.replay import RunReplay, replay
from weft.workflow.history.run_history import RunHistory, read_history
from weft.workflow.runtime.options import AskSettings
from weft.workflow.runtime.results.result import ANSWER

T = TypeVar("T")
TOOLS = '''
import weft

@weft.tool
def city(name: str) -> int:
    """People in a city."""
    with open("calls", "a") as calls:
        calls.write(name + "\\n")
    return {"Rome": 3, "Berlin": 4}[name]

@weft.tool(pure=True)
def total(numbers: list[int]) -> int:
    """Their sum."""
    return sum(numbers)
'''
PLAN = '1. city(name="Rome")\n2. city(name="Berlin")\n3. total(numbers=[$1, $2])\n4. join($3)\n'
FINISH = '{"thought": "the sum", "decision": "finish", "answer": "7 million"}'
HOWMANY = "How many live in Rome and Berlin?"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "tools.py").write_text(TOOLS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def planner() -> FakeModel:
    return FakeModel([PLAN, FINISH], capabilities=Capabilities(structured_output=True))


def votes(request: ModelRequest) -> Reply:
    """Samples that end one after another, two of them with the same answer at last."""
    number = (request.sampling.seed or 0) % 7
    return Reply(f"Answer: {number // 2}", first_token_s=1.0 + number, per_token_s=0.0)


class Desk:
    """A journal and a clock, for questions in virtual time."""

    def __init__(self, journal: MemoryJournal | None = None) -> None:
        self.clock = FakeClock()
        self.journal = journal or MemoryJournal(self.clock)

    def settings(self, **more: Any) -> AskSettings:
        return AskSettings(clock=self.clock, journal=self.journal, **more)

    def think(self, model: FakeModel, **given: Any) -> weft.Thought:
        more: Mapping[str, Any] = given.pop("more", {})
        given = {"options": weft.ThinkOptions(width=4), "strategy": "sample", **given}
        return self.run(weft.think("why?", model=model, settings=self.settings(**more), **given))

    def ask(self, model: FakeModel, **given: Any) -> weft.Answer:
        more: Mapping[str, Any] = given.pop("more", {})
        given = {"tools": ["./tools.py"], **given}
        return self.run(weft.ask(HOWMANY, model=model, settings=self.settings(**more), **given))

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        return self.clock.run(main)

    @property
    def story(self) -> RunHistory:
        """The latest run."""
        return read_history(self.journal, self.journal.runs(limit=1)[0].run)

    def cut_off(self, share: float) -> Desk:
        """The desk of somebody else, whose journal has no more than the beginning of the run."""
        desk, story = Desk(), self.story
        claim = desk.journal.begin(story.header)
        records = [numbered.record for numbered in story.records]
        desk.journal.append(story.run, records[: int(len(records) * share)])
        claim.release()
        return desk


def repeated(story: RunHistory) -> RunReplay:
    return replay(story, rebuild_or_read_unit(story.header))


def test_a_question_is_recorded_as_the_workflow_that_it_is() -> None:
    desk = Desk()
    desk.ask(planner(), options=weft.AgentOptions(rounds=2, instructions="Be quick."))
    header = desk.story.header
    flow = weft.loads(header.document["ask.yaml"])
    node = flow.document.nodes["answer"]
    assert node.model_dump(exclude_unset=True)["agent"]["loop"] == "compiler"
    assert flow.document.tools["city"].use == "./tools.py:city"
    assert header.inputs == {"question": HOWMANY, "instructions": "Be quick."}
    assert header.document["tools.py:city"].startswith("sha256:")
    assert desk.story.ended is not None
    assert desk.story.outcomes[ANSWER].value == "7 million"


@pytest.mark.parametrize("strategy", ["direct", "sample", "best-of", "skeleton", "map-reduce"])
def test_a_thought_is_repeated_offline(strategy: str, folder: Path) -> None:
    desk = Desk()
    documents = [weft.Document("a", "one"), weft.Document("b", "two")]
    desk.think(FakeModel(votes), strategy=strategy, documents=documents, system="Be kind.")
    found = repeated(desk.story)
    assert found.ok, found.report()
    assert found.identical == len(desk.story.outcomes)
    assert found.result.outputs == {"answer": desk.story.outcomes[ANSWER].value}


def test_samples_that_end_at_once_are_repeated_as_they_ended() -> None:
    journal = MemoryJournal()
    for _ in range(3):  # in real time: they end within microseconds, and the vote is decided
        settings = AskSettings(journal=journal)
        model = FakeModel(["Answer: 8"])
        weft.think_sync("why?", model=model, strategy="sample", settings=settings)
        story = read_history(journal, journal.runs(limit=1)[0].run)
        assert repeated(story).ok, repeated(story).report()


def test_an_answer_is_repeated_without_its_tools(folder: Path) -> None:
    desk = Desk()
    assert desk.ask(planner()).value == "7 million"
    story = desk.story
    assert repeated(story).ok, repeated(story).report()
    write_cassette(story, folder / "asked.cassette")
    (folder / "tools.py").unlink()
    assert repeated(story).ok, repeated(story).report()
    carried = read_cassette(folder / "asked.cassette")
    assert str(folder) not in (folder / "asked.cassette").read_text("utf-8")
    assert repeated(carried).ok
    assert sorted((folder / "calls").read_text().split()) == ["Berlin", "Rome"]
    with pytest.raises(BuildError, match="asked on another machine"):
        rebuild_unit(carried.header)


def test_a_changed_question_is_drift(folder: Path) -> None:
    desk = Desk()
    desk.ask(planner())
    changed = TOOLS.replace("People in a city", "Inhabitants of a town")
    (folder / "others.py").write_text(changed)
    story = desk.story
    text = story.header.document["ask.yaml"].replace("./tools.py:", "./others.py:")
    (folder / "ask.yaml").write_text(text)
    found = replay(story, rebuild_or_read_unit(story.header, folder / "ask.yaml"))
    assert not found.differences
    assert any("Inhabitants of a town" in str(drift) for drift in found.drifts)


@pytest.mark.parametrize("share", [0.1, 0.4, 0.7, 0.95])
def test_what_a_model_has_said_it_is_not_asked_again(share: float) -> None:
    desk, model = Desk(), FakeModel(votes)
    whole = desk.think(model)
    cut, again = desk.cut_off(share), FakeModel(votes)
    answered = sum(isinstance(one, ModelAnswered) for one in cut.story.calls)
    assert sum(isinstance(one, ModelCalled) for one in cut.story.calls) >= answered
    thought = cut.think(again, more={"resume": "last"})
    assert (thought.answer, thought.key) == (whole.answer, whole.key)
    assert len(again.requests) <= len(model.requests) - answered
    assert cut.journal.runs()[0].standing == "succeeded"
    assert cut.journal.runs()[0].parts == 2
    assert repeated(cut.story).ok, repeated(cut.story).report()


def test_tools_that_were_called_are_not_called_again(folder: Path) -> None:
    desk = Desk()
    desk.ask(planner())
    records = [type(each.record).__name__ for each in desk.story.records]
    last = max(
        records.index("ModelAnswered"), len(records) - 1 - records[::-1].index("ToolReturned")
    )
    cut = desk.cut_off((last + 1.5) / len(records))
    (folder / "calls").unlink()
    model = FakeModel([FINISH], capabilities=Capabilities(structured_output=True))
    assert cut.ask(model, more={"resume": "last"}).value == "7 million"
    assert not (folder / "calls").exists()
    assert len(model.requests) == 1


def test_a_resumed_agent_concludes_from_the_same_calls(folder: Path) -> None:
    cities = '\n@weft.tool\ndef cities() -> list[str]:\n    return ["Rome", "Berlin"]\n'
    (folder / "tools.py").write_text(TOOLS + cities)
    plan = "1. cities()\n2. city(name=$item) for each $1\n3. total(numbers=$2)\n4. join($2, $3)\n"
    able = Capabilities(structured_output=True)
    desk, model = Desk(), FakeModel([plan, FINISH], capabilities=able)
    whole = desk.ask(model)
    told = model.requests[-1].messages
    assert 'city(name="Rome")' in told[-1].content
    assert "total(numbers=[3, 4])" in told[-1].content
    records = [each.record for each in desk.story.records]
    returned = [n for n, record in enumerate(records, 1) if isinstance(record, ToolReturned)]
    assert len(returned) == 4
    for place in [*returned, *(place + 3 for place in returned)]:
        (folder / "calls").unlink()
        cut = desk.cut_off((place + 0.5) / len(records))
        made = [one for one in cut.story.calls if isinstance(one, ToolReturned)]
        again = FakeModel(
            lambda request: FINISH if "Results of the calls" in str(request) else plan,
            capabilities=able,
        )
        (folder / "calls").touch()
        answer = cut.ask(again, more={"resume": "last"})
        assert (answer.value, answer.calls) == (whole.value, whole.calls)
        for request in again.requests:
            if "Results of the calls" in str(request):
                assert request.messages == told
        known = sum(1 for one in made if one.value in (3, 4))
        assert len((folder / "calls").read_text().splitlines()) == 2 - known


def test_only_the_same_question_goes_on_with_a_run() -> None:
    desk = Desk()
    desk.think(FakeModel(votes))
    cut = desk.cut_off(0.5)
    with pytest.raises(InputError, match="asks something else"):
        cut.run(
            weft.think(
                "how?",
                model=FakeModel(votes),
                settings=cut.settings(resume="last"),
                options=weft.ThinkOptions(width=4),
            )
        )
    with pytest.raises(BuildError, match="has changed"):
        cut.think(FakeModel(votes), strategy="best-of", more={"resume": "last"})
    assert cut.journal.runs()[0].standing == "interrupted"
    with pytest.raises(BuildError, match="was asked in Python, and takes `client` from there"):
        rebuild_unit(cut.story.header)


def test_a_run_is_called_as_it_is_told_and_recorded_where_that_is_wanted(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Desk()
    desk.think(FakeModel(["Answer: 1"]), more={"run": "mine"})
    assert desk.journal.summary(RunId("mine")).standing == "succeeded"
    place = folder / "own.sqlite"
    monkeypatch.setenv("WEFT_JOURNAL", str(place))
    quiet = AskSettings(durability="none")
    weft.think_sync("why?", model=FakeModel(["Answer: 1"]), settings=quiet)
    assert not place.exists()
    weft.ask_sync(HOWMANY, model=planner(), tools=["./tools.py"])
    assert not place.exists()  # a fake
    real = planner()
    real.fake = False
    weft.ask_sync(HOWMANY, model=real, tools=["./tools.py"])
    assert place.exists()


def test_secrets_stay_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOUSE_API_KEY", "sk-very-secret-1234")
    desk = Desk()
    secret = weft.Document("d", "the key is sk-very-secret-1234")
    model = FakeModel(["Answer: sk-very-secret-1234"])
    thought = desk.think(model, documents=[secret])
    assert thought.answer == "sk-very-secret-1234"
    told = repr(desk.story.header) + "".join(map(repr, desk.story.records))
    assert "sk-very-secret" not in told
    assert "[secret:HOUSE_API_KEY]" in told
    assert repeated(desk.story).ok, repeated(desk.story).report()


def test_tools_that_no_file_could_name_are_recorded_too() -> None:
    tools = FakeTools(echo=lambda text: text)
    plan = FakeModel(['1. echo(text="x")\n2. join($1)\n', FINISH])
    desk = Desk()
    answer = desk.ask(plan, tools=[tools])
    assert [call.tool for call in answer.calls] == ["echo"]
    assert repeated(desk.story).ok, repeated(desk.story).report()


def test_a_failure_is_recorded_and_its_reason_told() -> None:
    desk = Desk()
    down = FakeModel([Reply(error=ModelUnavailable("gone"))])
    with pytest.raises(ReasoningError, match="gone"):
        desk.think(down, strategy="direct")
    assert desk.journal.runs()[0].standing == "failed"
    assert repeated(desk.story).ok


def test_a_part_of_a_question_runs_again_live(folder: Path) -> None:
    desk = Desk()
    desk.ask(planner())
    unit = weft.loads(desk.story.header.document["ask.yaml"], str(folder / "x.yaml")).unit
    run = fork_run(
        desk.story,
        unit,
        "answer",
        desk.journal,
        settings={"models": {"chat": planner()}, "clock": desk.clock},
    )
    desk.run(run.wait())
    assert answer_of_run(run).value == "7 million"
    assert desk.story.header.settings["forked"] != desk.story.run
    assert desk.story.header.settings["question"] is True
