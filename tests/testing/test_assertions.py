"""`weft.testing`: scripts, scripted agents, assertions about a run, recorded answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.errors import AgentError, CassetteMiss, ModelRequestError, ModelUnavailable, SourceError
from weft.serve import Message, ModelRequest, Usage, complete
from weft.testing import (
    CassetteModel,
    FakeClock,
    FakeModel,
    Reply,
    RunSpy,
    ScriptedAgent,
    call_tool,
)

pytest_plugins = ["pytester"]


@weft.tool
def search(query: str, limit: int = 3) -> str:
    return f"{limit} about {query}"


def brief(model: Any) -> weft.Flow:
    """Searches, then writes notes about topics."""
    flow = weft.Flow("brief", models={"small": model})
    topics = flow.input("topics", list[str])
    found = flow.tool(search, "rivers", limit=2, name="found")
    notes = flow.map(
        topics,
        lambda t: flow.model("small", f"About {t}", name="note"),
        name="notes",
        after=[found],
    )
    flow.output(notes=notes)
    return flow


def asked(text: str) -> ModelRequest:
    return ModelRequest((Message("user", text),))


# -- scripts -------------------------------------------------------------------------------------


def ask(model: Any, text: str) -> Any:
    return FakeClock().run(complete(model, asked(text)))


def test_replies_by_rule_in_order_by_function_and_as_data() -> None:
    model = FakeModel(
        {
            "[Tt]ea": ["old", Reply("green", usage=Usage(7, 3, requests=1))],
            r"\d+ \+ \d+": lambda request: request.messages[-1].content.upper(),
            "json": {"a": [1]},
        }
    )
    assert [ask(model, text).text for text in ("Tea", "tea", "tea")] == ["old", "green", "green"]
    assert ask(model, "tea").usage.tokens == 10
    assert ask(model, "what is 1 + 2").text == "WHAT IS 1 + 2"
    assert json.loads(ask(model, "json please").text) == {"a": [1]}
    with pytest.raises(ModelRequestError, match=r"no rule(.|\n)*user: salt(.|\n)*'json'"):
        ask(model, "salt")


@pytest.mark.parametrize("agent", ["react", "parallel-react"])
def test_a_scripted_agent_calls_tools_and_answers(agent: str) -> None:
    spy = RunSpy()
    model = ScriptedAgent([call_tool("search", query="tea"), "Tea is old."])
    answer = weft.ask_sync(
        "Is tea old?",
        tools=[search],
        model=model,
        agent=agent,
        settings=weft.AskSettings(journal=spy),
    )
    assert answer.value == "Tea is old."
    spy.assert_called("search", times=1, query="tea")
    spy.assert_prompted("3 about tea", times=1)
    short = ScriptedAgent([call_tool("search", query="tea")])
    with pytest.raises(AgentError):
        weft.ask_sync("Is tea old?", tools=[search], model=short, agent=agent)


# -- assertions ----------------------------------------------------------------------------------


def test_what_ran_how_often_with_what_in_which_order(weft_spy: RunSpy) -> None:
    brief(FakeModel(["x y"])).run_sync(topics=["tea", "salt"], journal=weft_spy)
    weft_spy.assert_succeeded()
    weft_spy.assert_ran("found", times=1)
    weft_spy.assert_ran("notes[*]", times=2)
    weft_spy.assert_not_ran("other", "notes[2]")
    weft_spy.assert_order("found", "notes")
    weft_spy.assert_called("search", query="rivers")
    weft_spy.assert_called("search", times=1, query="rivers", limit=2)
    weft_spy.assert_not_called("search", query="seas")
    weft_spy.assert_prompted("About tea", model="small", times=1)
    weft_spy.assert_tokens(at_most=8, exactly=8)
    assert weft_spy.usage.requests == 2
    assert weft_spy.calls == [("search", {"query": "rivers", "limit": 2})]
    assert min(weft_spy.prompts) == ("small", "user: About salt")


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (lambda s: s.assert_ran("notez"), r"expected: notez ran; instead, in order:\n +found\n"),
        (lambda s: s.assert_ran("found", 2), r"expected: found ran 2x, not 1x"),
        (lambda s: s.assert_not_ran("found"), r"expected: found ran 0x, not 1x"),
        (lambda s: s.assert_order("notes", "found"), r"found began before notes had ended"),
        (lambda s: s.assert_order("found", "lost"), r"lost did not run"),
        (
            lambda s: s.assert_called("search", query="seas"),
            r"search\(query='seas'\) was called; (.|\n)*search\(query='rivers', limit=2\)",
        ),
        (lambda s: s.assert_not_called("search"), r"was called 0x, not 1x"),
        (
            lambda s: s.assert_prompted("x", model="big"),
            r"a prompt of big contained 'x'; there",
        ),
        (lambda s: s.assert_tokens(at_most=1), r"at most 1 tokens were expected: 4 tokens"),
        (lambda s: s.assert_tokens(exactly=1), r"1 tokens were expected: 4 tokens"),
        (lambda s: s.assert_failed(), r"the run succeeded"),
    ],
)
def test_messages_say_what_happened_instead(check: Callable[[RunSpy], None], message: str) -> None:
    spy = RunSpy()
    brief(FakeModel(["x y"])).run_sync(topics=["tea"], journal=spy)
    with pytest.raises(AssertionError, match=message):
        check(spy)


def test_failures_and_runs_that_are_not_there() -> None:
    spy = RunSpy()
    with pytest.raises(AssertionError, match="no run was recorded"):
        spy.assert_succeeded()
    down = FakeModel([Reply(error=ModelUnavailable("it is down"))])
    brief(down).run_sync(topics=["tea"], journal=spy)
    spy.assert_failed(because="it is down")
    with pytest.raises(AssertionError, match=r"the run failed: .*it is down"):
        spy.assert_succeeded()
    with pytest.raises(AssertionError, match="no reason contains 'up'"):
        spy.assert_failed(because="up")


def test_runs_on_fakes_are_recorded_only_in_a_named_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEFT_JOURNAL", str(tmp_path / "journal.sqlite"))
    brief(FakeModel(["x"])).run_sync(topics=["tea"])
    weft.ask_sync("why?", model=ScriptedAgent(["because"]), agent="react")
    weft.think_sync("why?", model=FakeModel(["because"]), strategy="direct")
    assert not list(tmp_path.iterdir())
    flow = weft.Flow("real")
    flow.output(x=flow.value(1))
    flow.run_sync()
    assert (tmp_path / "journal.sqlite").exists()


# -- recorded answers ----------------------------------------------------------------------------


def record(path: Path, *texts: str, replies: list[Any] | None = None) -> FakeModel:
    real = FakeModel(replies or ["one", "two", "three"], model="real")
    model = CassetteModel(path, lambda: real, record="once")
    for text in texts:
        ask(model, text)
    model.save()
    return real


def test_answers_are_recorded_once_and_replayed_offline(tmp_path: Path) -> None:
    path = tmp_path / "sub" / "small.json"
    assert len(record(path, "tea", "salt", "tea").requests) == 3
    assert record(path, "tea").requests == []  # `once`: there is a file
    model = CassetteModel(path)
    assert [ask(model, text).text for text in ("salt", "tea", "tea")] == ["two", "one", "three"]
    assert model.model == "real"
    assert ask(CassetteModel(path), "tea").usage == Usage(1, 1, requests=1, forwards=1)
    with pytest.raises(CassetteMiss, match="only 2x"):
        ask(model, "tea")


def test_an_unknown_request_is_refused_with_the_difference(tmp_path: Path) -> None:
    path = tmp_path / "small.json"
    record(path, "Write about tea.", "Something else, longer and about other things.")
    with pytest.raises(CassetteMiss) as missed:
        ask(CassetteModel(path), "Write about salt.")
    lines = str(missed.value).splitlines()
    assert [line for line in lines if line.startswith("-") and "tea" in line]
    assert [line for line in lines if line.startswith("+") and "salt" in line]
    assert "--weft-record" in str(missed.value)
    with pytest.raises(CassetteMiss, match="has no answers"):
        ask(CassetteModel(tmp_path / "none.json"), "x")


def test_secrets_are_not_in_the_file_and_errors_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_API_KEY", "sk-very-secret-0815")
    path = tmp_path / "small.json"
    replies = [
        "it is sk-very-secret-0815",
        Reply(error=ModelUnavailable("down sk-very-secret-0815")),
    ]
    with pytest.raises(ModelUnavailable):
        record(path, "the key is sk-very-secret-0815", "again", replies=replies)
    model = CassetteModel(path, lambda: FakeModel(replies), record="all")
    ask(model, "the key is sk-very-secret-0815")
    with pytest.raises(ModelUnavailable):
        ask(model, "again")
    model.save()
    assert "very-secret" not in path.read_text("utf-8")
    replayed = CassetteModel(path)
    assert ask(replayed, "the key is sk-very-secret-0815").text == "it is [secret:MY_API_KEY]"
    with pytest.raises(ModelUnavailable, match="down"):
        ask(replayed, "again")


def test_once_records_no_failed_call_and_no_file_without_an_answer(tmp_path: Path) -> None:
    path = tmp_path / "small.json"
    down = Reply(error=ModelUnavailable("is it running?"))
    model = CassetteModel(path, lambda: FakeModel(["one", down]), record="once")
    ask(model, "tea")
    with pytest.raises(ModelUnavailable):
        ask(model, "salt")
    model.save()
    assert not path.exists()
    assert len(record(path, "tea", "salt").requests) == 2  # now it is up
    assert ask(CassetteModel(path), "salt").text == "two"


def test_once_records_the_answer_of_a_call_that_first_failed(tmp_path: Path) -> None:
    path = tmp_path / "small.json"
    down = Reply(error=ModelUnavailable("is it running?"))
    model = CassetteModel(path, lambda: FakeModel([down, "one"]), record="once")
    with pytest.raises(ModelUnavailable):
        ask(model, "tea")
    ask(model, "tea")
    model.save()
    assert ask(CassetteModel(path), "tea").text == "one"


@pytest.mark.parametrize("text", ["", "[]", '{"weft_model_cassette": 9}', "{}"])
def test_a_file_that_is_no_cassette_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(SourceError, match="no cassette of a model"):
        CassetteModel(path)


def test_the_fixture_records_only_when_it_is_told(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import weft
        from weft.testing import FakeModel

        def test_it(weft_cassette, weft_spy):
            model = weft_cassette("brief", lambda: FakeModel(["Tea is old."]))
            flow = weft.Flow("f", models={"small": model})
            flow.output(x=flow.model("small", "About tea"))
            result = flow.run_sync(journal=weft_spy)
            weft_spy.assert_succeeded()
            assert result["x"] == "Tea is old."
        """
    )
    options = ("-p", "no:cacheprovider", "-p", "no:randomly")
    pytester.runpytest_inprocess(*options).stdout.fnmatch_lines(["*has no answers*"])
    pytester.runpytest_inprocess(*options, "--weft-record=once").assert_outcomes(passed=1)
    assert (pytester.path / "cassettes" / "brief.json").exists()
    pytester.runpytest_inprocess(*options).assert_outcomes(passed=1)
