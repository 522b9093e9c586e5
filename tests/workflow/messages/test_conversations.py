"""Conversations: threads of messages that outlive runs."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import weft
from weft.cli.main import app
from weft.errors import BuildError, CapabilityError, InputError, StoreError, UnknownReference
from weft.testing import FakeModel, MemoryJournal, Reply

TEXT = """
name: chat
inputs: {thread: string, text: string}
models: {small: local:smollm2-135m-instruct}
nodes:
  reply:
    model: small
    conversation: "{{ thread }}"
    prompt: "{{ text }}"
outputs: {answer: "{{ reply }}"}
"""


def flow_with(conversation: str, *, system: str = "") -> weft.Flow[Any, Any]:
    text = TEXT.replace('conversation: "{{ thread }}"', f"conversation: {conversation}")
    return weft.loads(
        text.replace("    prompt:", f"    system: {system}\n    prompt:") if system else text
    )


def asked(model: FakeModel, request: int = -1) -> list[str]:
    return [f"{each.role}: {each.content}" for each in model.requests[request].messages]


def say(flow: Any, journal: Any, model: FakeModel, text: str, thread: str = "ada") -> Any:
    return flow.run_sync(thread=thread, text=text, models={"small": model}, journal=journal)


@pytest.fixture(params=["memory", "sqlite"])
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return MemoryJournal() if request.param == "memory" else tmp_path / "journal.sqlite"


def test_a_run_reads_what_earlier_runs_said(journal: Any) -> None:
    model = FakeModel(["Hello", "You are Ada", "Who?"])
    flow = weft.loads(TEXT)
    say(flow, journal, model, "I am Ada")
    assert say(flow, journal, model, "Who am I?")["answer"] == "You are Ada"
    assert asked(model) == ["user: I am Ada", "assistant: Hello", "user: Who am I?"]
    say(flow, journal, model, "Who am I?", thread="bob")
    assert asked(model) == ["user: Who am I?"], "another thread"
    threads = weft.Conversations(journal)
    assert [(each.thread, each.messages) for each in threads.list()] == [("ada", 4), ("bob", 2)]
    assert threads.read("ada", last=1) == (weft.Message("assistant", "You are Ada"),)
    threads.delete("bob")
    with pytest.raises(UnknownReference, match="'bo'") as caught:
        threads.delete("bo")
    assert "ada" in str(caught.value.hint)


def test_equal_runs_append_again_and_pruning_runs_loses_nothing(journal: Any) -> None:
    model, flow = FakeModel(["Hi", "Hi", "Hi"]), weft.loads(TEXT)
    say(flow, journal, model, "Hello")
    say(flow, journal, model, "Hello")
    opened = journal if isinstance(journal, MemoryJournal) else weft.open_journal(journal)
    opened.prune(keep=0)
    say(flow, opened, model, "Hello")  # its id is that of the first run
    assert len(weft.Conversations(opened).read("ada")) == 6
    opened.close()


def test_messages_of_a_program_and_of_a_node_are_appended(journal: Any) -> None:
    threads = weft.Conversations(journal)
    said = [{"role": "user", "content": "I am Ada"}, weft.Message("assistant", "Hello")]
    assert threads.append("ada", said, key="import")
    assert not threads.append("ada", said, key="import")
    with pytest.raises(InputError, match="role"):
        threads.append("ada", [{"content": "x"}])
    flow = weft.Flow("chat", models={"small": "local:smollm2-135m-instruct"})
    given = [{"role": "user", "content": "What is this?"}, {"role": "user", "content": "And that?"}]
    node = flow.model("small", messages=given, system="Be brief.", conversation={"id": "ada"})
    flow.output(answer=node)
    model = FakeModel(["Tea"])
    flow.run_sync(models={"small": model}, journal=journal)
    assert asked(model)[:2] == ["system: Be brief.", "user: I am Ada"]
    assert [m.content for m in threads.read("ada")][2:] == ["What is this?", "And that?", "Tea"]


CHILD = """
import asyncio, os, sys, weft
from weft.testing import FakeModel
file, when, command, thread = sys.argv[1:]
journal = weft.open_journal(file)
append = journal.append_to_thread
def dying(*arguments):
    if when == "after":
        append(*arguments)
    os._exit(9)
if when != "never":
    journal.append_to_thread = dying
flow = weft.load(file + ".yaml")
model = FakeModel(lambda request: "answer of " + command)
settings = dict(models={"small": model}, journal=journal)
if command == "resume":
    result = asyncio.run(flow.resume("r", **settings).wait())
    print(result["answer"], len(model.requests))
elif command == "run":
    flow.run_sync(thread=thread, text="Hello", run="r", **settings)
else:
    for number in range(10):
        flow.run_sync(thread=thread, text=f"{command} {number}", **settings)
"""


def child(file: Path, when: str, command: str) -> subprocess.Popen[str]:
    (file.parent / f"{file.name}.yaml").write_text(TEXT)
    line = [sys.executable, "-c", CHILD, str(file), when, command, "ada"]
    return subprocess.Popen(line, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_killed_run_appends_once(when: str, tmp_path: Path) -> None:
    file = tmp_path / "journal.sqlite"
    killed = child(file, when, "run")
    killed.communicate(timeout=60)
    assert killed.returncode == 9
    assert len(weft.Conversations(file).read("ada")) == (2 if when == "after" else 0)
    out, _ = child(file, "never", "resume").communicate(timeout=60)
    assert out.split() == ["answer", "of", "run", "0"], "the model is not asked again"
    assert [m.content for m in weft.Conversations(file).read("ada")] == ["Hello", "answer of run"]


def test_two_processes_on_one_thread_lose_nothing(tmp_path: Path) -> None:
    file = tmp_path / "journal.sqlite"
    both = [child(file, "never", name) for name in ("left", "right")]
    assert [each.communicate(timeout=100)[0] for each in both] == ["", ""]
    said = [message.content for message in weft.Conversations(file).read("ada")]
    for name in ("left", "right"):
        own = [text for text in said if text.startswith(name)]
        assert own == [f"{name} {number}" for number in range(10)]
    assert len(said) == 40
    assert all(said[at + 1] == f"answer of {said[at].split()[0]}" for at in range(0, 40, 2))


def test_a_failed_append_fails_the_node_and_is_made_by_the_resumed_run() -> None:
    class Full(MemoryJournal):
        full = True

        def append_to_thread(self, *arguments: Any) -> bool:
            if self.full:
                raise StoreError("the disk is full")
            return super().append_to_thread(*arguments)

    journal, model, flow = Full(), FakeModel(["Hi"]), weft.loads(TEXT)
    assert say(flow, journal, model, "Hello").status == "failed"
    journal.full = False
    again = asyncio.run(flow.resume(models={"small": model}, journal=journal).wait())
    assert again.status == "succeeded"
    assert [m.content for m in weft.Conversations(journal).read("ada")] == ["Hello", "Hi"]


def test_a_replay_does_not_touch_the_store(tmp_path: Path) -> None:
    file = tmp_path / "journal.sqlite"
    (tmp_path / "chat.yaml").write_text(TEXT)
    flow, model = weft.load(tmp_path / "chat.yaml"), FakeModel(["Hello", "Ada"])
    say(flow, file, model, "I am Ada")
    say(flow, file, model, "Who?")
    weft.Conversations(file).delete("ada")
    replayed = CliRunner().invoke(app, ["replay", "last", "--journal", str(file)])
    assert replayed.exit_code == 0, replayed.output
    assert weft.Conversations(file).list() == ()


def test_the_command_line_lists_shows_and_deletes(tmp_path: Path) -> None:
    file = tmp_path / "journal.sqlite"
    say(weft.loads(TEXT), file, FakeModel(["Hello\x1b[31m"]), "I am Ada")

    def command(*words: str) -> Any:
        return CliRunner().invoke(app, ["conversations", *words, "--journal", str(file)])

    assert command("list").output == "ada  2 messages\n"
    assert command("show", "ada").output == "user: I am Ada\nassistant: Hello\n"
    unknown = command("show", "adam")
    assert unknown.exit_code != 0
    assert "did you mean 'ada'?" in unknown.output
    assert command("delete", "ada").output == "removed ada\n"
    assert command("delete", "ada").exit_code != 0


def test_windows_by_messages_and_tokens() -> None:
    journal = MemoryJournal()
    said = [weft.Message("user", f"{number} " + "x" * 38) for number in range(6)]
    weft.Conversations(journal).append("ada", said)
    model = FakeModel(["a", "b"])
    say(flow_with("{id: '{{ thread }}', last: 2}"), journal, model, "now")
    assert [text[6] for text in asked(model)] == ["4", "5", "n"]
    weft.Conversations(journal).delete("ada")
    weft.Conversations(journal).append("ada", said)
    say(flow_with("{id: '{{ thread }}', tokens: 45}"), journal, model, "now")
    assert [text[6] for text in asked(model)] == ["3", "4", "5", "n"]


def turns(shape: Sequence[int]) -> list[weft.Message]:
    """A user's message for 0, else so many calls with their results."""
    made: list[weft.Message] = []
    for at, calls in enumerate(shape):
        ids = [f"{at}.{number}" for number in range(calls)]
        asking = tuple(weft.ToolCall(each, "look", "{}") for each in ids)
        made.append(weft.Message("assistant" if ids else "user", f"turn {at}", asking))
        made += [weft.Message("tool", "found", tool_call_id=each) for each in ids]
    return made


@given(st.lists(st.integers(0, 3), max_size=8), st.integers(1, 12))
def test_windows_never_split_calls_from_results(shape: list[int], last: int) -> None:
    journal, model = MemoryJournal(), FakeModel(["yes"])
    messages = turns(shape)
    if messages:
        weft.Conversations(journal).append("ada", messages)
    say(flow_with(f"{{id: '{{{{ thread }}}}', last: {last}}}"), journal, model, "now")
    *window, _ = model.requests[0].messages
    assert list(window) == messages[len(messages) - len(window) :]
    assert len(window) <= last
    called = [call.id for message in window for call in message.tool_calls]
    assert called == [message.tool_call_id for message in window if message.role == "tool"]


def test_calls_without_results_are_not_sent() -> None:
    journal, model = MemoryJournal(), FakeModel(["yes"])
    left = turns([0, 2])[:-1]
    weft.Conversations(journal).append("ada", left)
    say(weft.loads(TEXT), journal, model, "now")
    sent = model.requests[0].messages
    assert [call.id for call in sent[1].tool_calls] == ["1.0"]


def test_calls_of_tools_and_typed_answers_are_kept() -> None:
    journal = MemoryJournal()
    flow = weft.Flow("chat", models={"small": "local:smollm2-135m-instruct"})
    flow.output(answer=flow.model("small", "x", schema={"n": "integer"}, conversation="ada"))
    model = FakeModel(["no JSON", '{"n": 1}'])
    assert flow.run_sync(models={"small": model}, journal=journal)["answer"] == {"n": 1}
    said = [message.content for message in weft.Conversations(journal).read("ada")]
    assert said == ["x", '{"n": 1}'], "not the answer that was repaired"


def test_a_summary_stands_for_what_has_left_the_window() -> None:
    def answer(request: Any) -> str:
        prompt = request.messages[-1].content
        return f"S({prompt.count('fact')})" if "Summarize" in prompt else "ok"

    journal, model = MemoryJournal(), FakeModel(answer)
    flow = flow_with("{id: '{{ thread }}', last: 4, summarize: true}", system="Be brief.")
    for number in range(6):
        assert say(flow, journal, model, f"fact {number}").status == "succeeded"
    threads = weft.Conversations(journal)
    assert len(threads.read("ada")) == 12, "nothing is lost"
    assert asked(model) == [
        "system: Be brief.\n\nSummary of the conversation before:\nS(3)",
        *("user: fact 4", "assistant: ok", "user: fact 5"),
    ]
    summarizing = [each for each in model.requests if "Summarize" in each.messages[-1].content]
    assert len(summarizing) == 2, "not one for each turn"
    assert {each.sampling.thinking_tokens for each in summarizing} == {0}, "a short step"
    assert "Summary of the conversation before: S(3)" in summarizing[1].messages[0].content
    (only,) = threads.list()
    assert (threads.summary("ada"), only.summarized) == ("S(3)", 8)


def test_the_model_of_a_summary_may_be_another() -> None:
    text = TEXT.replace("models: {", "models: {short: local:smollm2-135m-instruct, ")
    text = text.replace(
        'conversation: "{{ thread }}"', "conversation: {id: a, last: 1, summarize: short}"
    )
    flow, journal = weft.loads(text), MemoryJournal()
    models = {"small": FakeModel(["1", "2"]), "short": FakeModel(["S"])}
    for said in ("x", "y"):
        flow.run_sync(thread="", text=said, models=models, journal=journal)
    assert len(models["short"].requests) == 1
    assert asked(models["small"]) == [
        "system: Summary of the conversation before:\nS",
        *("assistant: 1", "user: y"),
    ]


def test_a_secret_is_stored_as_a_mark_and_read_by_the_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WEATHER_API_KEY", "very-secret-value")
    journal, model, flow = MemoryJournal(), FakeModel(["ok", "ok"]), weft.loads(TEXT)
    say(flow, journal, model, "my key is very-secret-value [secret:WEATHER_API_KEY]")
    stored = weft.Conversations(journal).read("ada")[0].content
    assert "very-secret-value" not in stored
    say(flow, journal, model, "again")
    wanted = "user: my key is very-secret-value [secret:WEATHER_API_KEY]"
    assert asked(model)[0] == wanted, "a mark that somebody writes is no secret"


def test_a_conversation_without_a_journal_is_refused() -> None:
    with pytest.raises(StoreError, match="kept in a journal") as caught:
        weft.loads(TEXT).run_sync(thread="a", text="x", models={"small": FakeModel(["x"])})
    assert "journal=PATH" in str(caught.value.hint)


@pytest.mark.parametrize("thread", ["", "a\nb", "x" * 201])
def test_an_id_is_a_short_text(thread: str) -> None:
    result = say(weft.loads(TEXT), MemoryJournal(), FakeModel(["x"]), "x", thread)
    failure = result.outcomes["reply"].failure
    assert failure is not None
    assert "no id of a conversation" in failure.message


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ("samples: 3", "`samples` does not go with `conversation`"),
        ("think: sample", "`conversation` does not go with `think`"),
        ("agent: react", "`conversation` does not go with `agent`"),
        ("cache: true", "`cache` does not go with `conversation`"),
    ],
)
def test_what_does_not_go_with_a_conversation(more: str, why: str) -> None:
    with pytest.raises(BuildError, match=why):
        weft.loads(TEXT.replace("    prompt:", f"    {more}\n    prompt:"))


@pytest.mark.parametrize(
    ("conversation", "why"),
    [
        ("'{{ tread }}'", "tread"),
        ("{id: a, lst: 3}", "lst"),
        ("{last: 3}", "id"),
        ("{id: a, summarize: shrt}", "`shrt`"),
        ("{id: a, last: 0}", "last"),
    ],
)
def test_a_wrong_conversation_is_refused_where_it_is_written(conversation: str, why: str) -> None:
    with pytest.raises(BuildError, match=why) as caught:
        flow_with(conversation)
    assert "<text>:8:" in str(caught.value)


def test_a_model_that_thinks_has_none() -> None:
    thinks = "small: {use: think, model: base, think: sample}"
    text = TEXT.replace("{small:", f"{{{thinks}, base:")
    result = weft.loads(text).run_sync(
        thread="a", text="x", models={"base": FakeModel(["x"])}, journal=MemoryJournal()
    )
    failure = result.outcomes["reply"].failure
    assert failure is not None
    assert failure.error == CapabilityError.__name__


def test_media_and_tool_calls_come_back(tmp_path: Path) -> None:
    pixel = bytes.fromhex(
        "89504e470d0a1a0a0000000d4948445200000001000000010804000000b51c0c02"
        "0000000b4944415478da6364f80f00010501012718e3660000000049454e44ae426082"
    )
    image = weft.Image.from_bytes(pixel)
    call = weft.ToolCall("c", "look", '{"a": "\\u0000é"}')
    said = [
        weft.Message.of("user", ["What is it?", image]),
        weft.Message("assistant", "", (call,)),
        weft.Message("tool", "a pixel", tool_call_id="c"),
    ]
    threads = weft.Conversations(tmp_path / "journal.sqlite")
    threads.append("ada", said)
    assert threads.read("ada") == tuple(said)


def test_tools_of_a_node_are_called_over_two_runs() -> None:
    journal = MemoryJournal()
    flow = weft.Flow("chat", models={"small": "local:smollm2-135m-instruct"})

    @weft.tool
    def look(city: str) -> str:
        """Look."""
        return city

    flow.output(answer=flow.model("small", "Weather?", tools=[look], conversation="ada"))
    reply = Reply(tool_calls=(weft.ToolCall("c1", "look", '{"city": "Ulm"}'),))
    assert (
        flow.run_sync(models={"small": FakeModel([reply])}, journal=journal).status == "succeeded"
    )
    (_, answer) = weft.Conversations(journal).read("ada")
    assert answer.tool_calls == reply.tool_calls


def test_conversations_at_once_in_one_process() -> None:
    journal, flow = MemoryJournal(), weft.loads(TEXT)
    model = FakeModel(lambda _: "ok")

    async def all_at_once() -> None:
        runs = [
            flow.run(thread="ada", text=str(number), models={"small": model}, journal=journal)
            for number in range(8)
        ]
        await asyncio.wait([asyncio.ensure_future(run) for run in runs])

    asyncio.run(all_at_once())
    said = [message.content for message in weft.Conversations(journal).read("ada")]
    assert sorted(said[::2]) == [str(number) for number in range(8)]
    assert said[1::2] == ["ok"] * 8
