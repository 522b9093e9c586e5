"""Runs that ask a person, from the command line, behind a gateway and an MCP server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.types import ElicitResult

import weft
from tests.cli.command_line import go_into, typed
from weft.errors import InputError
from weft.events import NodeStarted
from weft.serve import WorkflowGateway
from weft.serving.gateway import GatewayOptions
from weft.testing import MemoryJournal
from weft.workflow.apps.mcp_server import WorkflowMcpServer

TOOLS = """
from pathlib import Path
import weft

@weft.tool(approve=True, effect="once")
def transfer(to: str, amount: int, note: str = "") -> str:
    with Path("made.txt").open("a") as made:
        made.write(f"{to} {amount} {note}\\n")
    return f"sent {amount} to {to}"
"""
PAY = """
name: pay
description: Pays.
tools: {transfer: ./tools.py:transfer}
inputs: {to: {type: string, default: bob}}
nodes:
  send: {tool: transfer, with: {to: "{{ to }}", amount: 50}}
outputs: {done: "{{ send }}"}
"""
TWO = PAY.replace("nodes:", "nodes:\n  day: {ask: Which day?, schema: {type: string}}").replace(
    "with: {", 'with: {note: "{{ day }}", '
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    go_into(tmp_path, monkeypatch)
    (tmp_path / "tools.py").write_text(TOOLS)
    (tmp_path / "pay.yaml").write_text(PAY)
    (tmp_path / "two.yaml").write_text(TWO)
    return tmp_path


def made() -> list[str]:
    file = Path("made.txt")
    return file.read_text().splitlines() if file.exists() else []


@pytest.mark.parametrize(
    ("words", "calls"),
    [
        ("yes", ["bob 50 "]),
        ("yes amount=5", ["bob 5 "]),
        ('y to="eve or al" amount=7 note=by the way', ["eve or al 7 by the way"]),
        ('{"approve": true, "arguments": {"to": "al", "amount": 1}}', ["al 1 "]),
        ("no: too much", []),
        ("n", []),
        ("false", []),
    ],
)
def test_a_call_waits_for_what_is_typed_elsewhere(words: str, calls: list[str]) -> None:
    ran = typed("run", "pay.yaml", "--run-id", "r")
    assert (ran.exit_code, made()) == (4, []), ran.output
    assert "weft answer r send/" in ran.output
    shown = typed("runs", "show", "r").output
    assert "may transfer be called?" in shown
    assert "amount" in shown
    data = json.loads(typed("runs", "show", "r", "--json").stdout)["questions"][0]
    assert (data["tool"], data["arguments"]["amount"]) == ("transfer", 50)
    answered = typed("answer", "r", "send", words)
    assert answered.exit_code == 0, answered.output
    resumed = typed("resume", "r")
    assert made() == calls
    assert resumed.exit_code == (0 if calls else 1)
    assert ("too much" in resumed.output) == ("too much" in words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("perhaps", "expected y, y ARGUMENT=VALUE, n: reason"),
        ("yes amont=5", "it takes to, amount, note"),
        ("yes please", "expected NAME=VALUE"),
        ("yes amount=much", "at amount"),
        ("yes amount=5 amount=6", "amount is given twice"),
        ("yes reason=only five", "it takes to, amount, note"),
        ('{"approve": true, "arguments": {"amount": 1}}', '"to" is a required property'),
        ('{"approve": true, "arguments": {"to": "al", "amount": 5, "amount": 6}}', "given twice"),
        ('{"approve": true, "amount": 3}', "no field 'amount'; to change arguments"),
        ('{"approve": true, "reason": "only if 3"}', "a yes has no `reason`"),
        ('{"approve": "yes"}', "`approve` is true or false"),
        ('{"approve": ', "or JSON"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused(words: str, said: str) -> None:
    typed("run", "pay.yaml", "--run-id", "r")
    wrong = typed("answer", "r", "send", words)
    assert (wrong.exit_code, said in wrong.output) == (2, True), wrong.output
    assert typed("resume", "r").exit_code == 4
    assert made() == []


def test_yes_approves_calls_and_answers_no_other_question() -> None:
    assert typed("run", "pay.yaml", "--yes").exit_code == 0
    assert made() == ["bob 50 "]
    ran = typed("run", "two.yaml", "--yes", "--run-id", "two")
    assert (ran.exit_code, "weft answer two day" in ran.output) == (4, True), ran.output
    assert typed("resume", "two", "--answer", "day=3").exit_code == 4
    assert typed("resume", "two", "--answer", "send=y amount=2").exit_code == 0
    assert made() == ["bob 50 ", "bob 2 3"]


def test_an_asking_run_is_reported_as_such() -> None:
    ran = typed("run", "pay.yaml", "--json", "--run-id", "r")
    assert (ran.exit_code, json.loads(ran.stdout)["status"]) == (4, "asking")
    unrecorded = typed("run", "pay.yaml", "--durability", "none")
    assert (unrecorded.exit_code, made()) == (4, [])


Chat = Callable[..., Awaitable[Any]]


def gateway(
    body: Callable[[Chat, httpx2.AsyncClient], Awaitable[None]],
    limits: GatewayOptions | None = None,
    **options: Any,
) -> None:
    """Run `body` against a gateway of both workflows."""
    flows = [weft.load("pay.yaml")]
    if options.get("answers"):
        Path("two.yaml").write_text(TWO.replace("name: pay", "name: two"))
        flows.append(weft.load("two.yaml"))

    async def main() -> None:
        served = WorkflowGateway(flows, limits or GatewayOptions(port=0), **options)
        served.bind()
        ready = asyncio.Event()
        serving = asyncio.create_task(served.serve(ready.set))
        await ready.wait()
        async with httpx2.AsyncClient(base_url=served.address, timeout=30) as client:

            async def chat(*messages: str, model: str = "pay", **fields: Any) -> Any:
                roles = ("user", "assistant")
                said = [{"role": roles[n % 2], "content": text} for n, text in enumerate(messages)]
                body = {"model": model, "messages": said, **fields}
                return await client.post("/v1/chat/completions", json=body)

            await body(chat, client)
        served.drain()
        await serving

    asyncio.run(main())


def choice(reply: Any) -> dict[str, Any]:
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()["choices"][0]
    return found


def test_a_conversation_answers_what_the_run_behind_it_asks() -> None:
    async def body(chat: Chat, client: httpx2.AsyncClient) -> None:
        asks = choice(await chat("pay bob"))
        text, run = asks["message"]["content"], asks["asking"]["run"]
        assert (asks["finish_reason"], made()) == ("stop", [])
        assert asks["asking"]["questions"][0]["arguments"] == {"to": "bob", "amount": 50}
        node = asks["asking"]["questions"][0]["node"]
        assert text.endswith(f"[run {run} asks {node}]")
        again = choice(await chat("pay bob", text, "what?"))
        assert "expected y" in again["message"]["content"]
        assert again["asking"]["run"] == run
        paid = choice(await chat("pay bob", again["message"]["content"], "yes amount=5"))
        assert (paid["message"]["content"], made()) == ("sent 5 to bob", ["bob 5 "])
        assert "asking" not in paid

    gateway(body, journal=MemoryJournal(), answers=True)


def test_programs_continue_a_run_by_its_id_and_several_questions_come_in_turn() -> None:
    async def body(chat: Chat, client: httpx2.AsyncClient) -> None:
        day = choice(await chat("pay", model="two"))["asking"]
        unknown = await chat("pay", model="two", run=day["run"], answers={"dya": "1"})
        assert (unknown.status_code, "day" in unknown.text) == (400, True), unknown.text
        other = await chat("pay", run=day["run"], answers={})
        assert (other.status_code, "has no run" in other.text) == (400, True)
        wrong = await chat("pay", model="two", run=day["run"], answers={"day": 3})
        assert wrong.status_code == 400
        send = choice(await chat("pay", model="two", run=day["run"], answers={"day": "may"}))
        node = send["asking"]["questions"][0]["node"]
        posted = await client.post(
            f"/v1/runs/{day['run']}/answers", json={"node": node, "value": True}
        )
        assert (posted.status_code, made()) == (202, [])
        end = choice(await chat("go on", model="two", run=day["run"]))
        assert (end["message"]["content"], made()) == ("sent 50 to bob", ["bob 50 may"])
        for again in ({}, {"answers": {"day": "may"}}, {"answers": {"send": True}}):
            over = choice(await chat("go on", model="two", run=day["run"], **again))
            assert over["message"]["content"] == "sent 50 to bob"
        assert made() == ["bob 50 may"]

    gateway(body, journal=MemoryJournal(), answers=True)


def test_an_answer_that_is_sent_again_gets_the_reply_of_its_run() -> None:
    async def body(chat: Chat, client: httpx2.AsyncClient) -> None:
        asked = choice(await chat("pay bob"))["message"]["content"]
        said = ("pay bob", asked, "yes amount=5")
        for messages in (said, said, ("pay bob", asked, "no: too late")):
            reply = await chat(*messages)
            assert choice(reply)["message"]["content"] == "sent 5 to bob"
            assert reply.headers["x-weft-run"] in asked
        # a client that keeps what got no reply, and a reply of an older weft
        body = [{"role": "user", "content": "yes"}] * 2
        history = [{"role": "assistant", "content": asked}, *body]
        kept = await client.post("/v1/chat/completions", json={"model": "pay", "messages": history})
        assert choice(kept)["message"]["content"] == "sent 5 to bob"
        older = f"{asked.rpartition(' ')[0]}]"
        assert choice(await chat("pay bob", older, "y"))["message"]["content"] == "sent 5 to bob"
        streamed = (await chat(*said, stream=True)).text
        assert "sent 5 to bob" in streamed
        assert made() == ["bob 5 "]

    gateway(body, journal=(journal := MemoryJournal()), answers=True)
    assert len(journal.runs()) == 1


def test_an_answer_is_not_one_to_the_next_question() -> None:
    async def body(chat: Chat, client: httpx2.AsyncClient) -> None:
        day = choice(await chat("pay", model="two"))["message"]["content"]
        first = choice(await chat("pay", day, "yes", model="two"))
        again = choice(await chat("pay", day, "yes", model="two"))
        assert "Call transfer(" in again["message"]["content"]
        assert (again, made()) == (first, [])

    gateway(body, journal=MemoryJournal(), answers=True)


def test_answers_that_are_sent_together_pay_once() -> None:
    async def body(chat: Chat, client: httpx2.AsyncClient) -> None:
        asked = choice(await chat("pay bob"))["message"]["content"]
        async with asyncio.TaskGroup() as group:
            sent = [group.create_task(chat("pay bob", asked, "yes")) for _ in range(4)]
        replies = [task.result() for task in sent]
        assert {reply.status_code for reply in replies} <= {200, 409}
        for reply in replies:
            said = "sent 50 to bob" if reply.status_code == 200 else "send the message again"
            assert said in reply.text
        assert choice(await chat("pay bob", asked, "yes"))["message"]["content"] == "sent 50 to bob"
        assert made() == ["bob 50 "]

    gateway(body, journal=(journal := MemoryJournal()), answers=True)
    assert len(journal.runs()) == 1


def test_an_answer_that_is_sent_again_repeats_no_failed_run() -> None:
    Path("tools.py").write_text(
        TOOLS.replace("    return", "    raise OSError('no line')\n    return")
    )

    async def body(chat: Chat, client: httpx2.AsyncClient) -> None:
        asked = choice(await chat("pay bob"))["message"]["content"]
        failed = await chat("pay bob", asked, "yes")
        again = await chat("pay bob", asked, "yes")
        assert [failed.status_code, again.status_code] == [500, 500]
        assert again.json()["error"]["code"] == failed.json()["error"]["code"]
        assert made() == ["bob 50 "]

    gateway(body, journal=(journal := MemoryJournal()), answers=True)
    assert [run.parts for run in journal.runs()] == [2]


def test_an_answered_run_that_was_interrupted_goes_on() -> None:
    Path("tools.py").write_text(
        TOOLS + "\n@weft.tool\nasync def hold(day: str) -> str:\n    import asyncio\n"
        "    await (asyncio.sleep(0) if Path('go').exists() else asyncio.Event().wait())\n"
        "    return f'held on {day}'\n"
    )
    Path("pay.yaml").write_text(
        "name: pay\ntools: {hold: ./tools.py:hold}\nnodes:\n  day: {ask: Which day?}\n"
        '  held: {tool: hold, with: {day: "{{ day }}"}}\noutputs: {done: "{{ held }}"}\n'
    )
    journal = MemoryJournal()

    async def body(chat: Chat, client: httpx2.AsyncClient) -> None:
        asks = choice(await chat("pay bob"))
        run, asked = asks["asking"]["run"], asks["message"]["content"]

        def pause(event: object) -> None:
            if isinstance(event, NodeStarted) and event.node == "held":
                part.pause("the process ends")

        listens = {"listeners": [pause], "journal": journal}
        part = weft.load("pay.yaml").resume(run, answers={"day": "may"}, **listens)
        await part.wait()
        assert journal.runs()[0].standing == "interrupted"
        Path("go").touch()
        again = choice(await chat("pay bob", asked, "june"))
        assert again["message"]["content"] == "held on may"

    gateway(body, journal=journal, answers=True)
    assert len(journal.runs()) == 1


def test_a_stream_ends_with_the_question() -> None:
    async def body(chat: Chat, client: httpx2.AsyncClient) -> None:
        lines = (await chat("pay", stream=True)).text.split("\n\n")
        chunks = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
        texts = [chunk["choices"][0]["delta"].get("content", "") for chunk in chunks]
        assert "Call transfer(" in "".join(texts)
        last = chunks[-1]["choices"][0]
        assert (last["finish_reason"], last["asking"]["run"]) == ("stop", None)
        refused = await chat("pay", run="pay-1", answers={})
        assert (refused.status_code, "cannot be continued" in refused.text) == (400, True)

    gateway(body)
    assert made() == []


def test_a_yes_with_a_reservation_is_refused_over_http_and_in_python() -> None:
    async def body(chat: Chat, client: httpx2.AsyncClient) -> None:
        asking = choice(await chat("pay bob"))["asking"]
        node, run = asking["questions"][0]["node"], asking["run"]
        for more in ({"reason": "only if 3"}, {"amount": 3}, {"arguments": {"amount": 3}}):
            value = {"approve": True, **more}
            posted = await client.post(
                f"/v1/runs/{run}/answers", json={"node": node, "value": value}
            )
            sent = await chat("pay bob", run=run, answers={node: value})
            for refused in (posted, sent):
                assert (refused.status_code, "to change arguments" in refused.text) == (400, True)
        assert made() == []

    gateway(body, journal=MemoryJournal(), answers=True)
    flow = weft.load("pay.yaml")
    for answer in ({"approve": True, "reason": "only if 3"}, {"approve": True, "amount": 3}):
        with pytest.raises(InputError, match="to change arguments, give all of them"):
            flow.run_sync(answers={"send": answer})
    assert made() == []
    assert flow.run_sync(answers={"send": {"approve": True, "reason": ""}}).ok
    assert made() == ["bob 50 "]


@pytest.mark.parametrize(
    ("more", "said"),
    [({"reason": "only if 3"}, "a yes has no reason"), ({"amount": 3}, "no field 'amount'")],
)
def test_a_form_with_a_reservation_is_shown_again(more: dict[str, Any], said: str) -> None:
    shown = []

    async def fill(_: Any, form: Any) -> ElicitResult:
        if "answer" in form.requested_schema["properties"]:
            return ElicitResult(action="accept", content={"answer": "may"})
        shown.append(form.message)
        again = {"changes": "amount=3", "reason": ""} if len(shown) == 2 else more
        return ElicitResult(action="accept", content={"approve": True, **again})

    assert mcp(fill).structured_content == {"done": "sent 3 to al"}
    assert said in shown[1]
    assert "NAME=VALUE into `changes`" in shown[1]
    assert made() == ["al 3 may"]


def mcp(callback: Any, journal: MemoryJournal | None = None) -> Any:
    """The result of a call of the tool `two`, of a client with this elicitation."""
    Path("two.yaml").write_text(TWO.replace("name: pay", "name: two"))

    async def main() -> Any:
        server = WorkflowMcpServer([weft.load("two.yaml")], journal=journal)
        try:
            async with Client(
                server.server, elicitation_callback=callback, mode="legacy"
            ) as client:
                return await client.call_tool("two", {"to": "al"})
        finally:
            await server.aclose()

    return asyncio.run(main())


def test_the_user_of_an_mcp_client_answers_by_elicitation() -> None:
    forms = []

    async def fill(_: Any, form: Any) -> ElicitResult:
        forms.append((form.message, form.requested_schema["properties"].keys()))
        if "answer" in form.requested_schema["properties"]:
            return ElicitResult(action="accept", content={"answer": "may"})
        changes = "amount=much" if len(forms) == 2 else "amount=7"
        return ElicitResult(action="accept", content={"approve": True, "changes": changes})

    result = mcp(fill)
    assert result.structured_content == {"done": "sent 7 to al"}
    assert made() == ["al 7 may"]
    assert "Call transfer(" in forms[1][0]
    assert "does not fit" in forms[2][0]


def test_without_elicitation_the_result_says_what_is_asked_and_how_to_answer() -> None:
    async def decline(_: Any, __: Any) -> ElicitResult:
        return ElicitResult(action="decline")

    for callback in (None, decline):
        result = mcp(callback, MemoryJournal())
        assert result.is_error
        text, meta = result.content[0].text, result.meta
        assert "Which day?" in text
        assert f"weft answer {meta['weft/run']} day VALUE" in text
        assert meta["weft/questions"][0]["node"] == "day"
    assert made() == []


def test_a_run_that_asks_holds_no_slot_of_the_gateway() -> None:
    async def body(chat: Chat, client: httpx2.AsyncClient) -> None:
        first, second = choice(await chat("pay")), choice(await chat("pay"))
        assert first["asking"]["run"] != second["asking"]["run"]
        assert "weft_gateway_running 0.0" in (await client.get("/metrics")).text
        for asks in (second, first):
            assert "asking" not in choice(await chat("pay", asks["message"]["content"], "yes"))
        assert len(made()) == 2

    limits = GatewayOptions(port=0, max_concurrent=1, max_waiting=0)
    gateway(body, limits, journal=MemoryJournal(), answers=True)


def test_a_call_that_waits_for_a_person_holds_no_slot_of_its_tool() -> None:
    nodes = '  also: {tool: transfer, with: {to: al, amount: 1}}\noutputs: {also: "{{ also }}", '
    limit = "run: {limits: {transfer: 1}, concurrency: 1}\n"
    Path("both.yaml").write_text(limit + PAY.replace("outputs: {", nodes))
    asked = []

    async def main() -> weft.FlowResult:
        both = asyncio.Event()

        async def answer(question: weft.PendingQuestion) -> bool:
            asked.append(question.node)
            if len(asked) == 2:
                both.set()
            await asyncio.wait_for(both.wait(), 20)
            return True

        return await weft.load("both.yaml").run(answer=answer)

    assert asyncio.run(main()).status == "succeeded"
    assert (len(asked), len(made())) == (2, 2)
