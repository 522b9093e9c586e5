"""What a request says of its program: nothing by default, and each form as its readers want it."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import aclosing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.serving.openai.endpoint_calls import ask, question
from tests.serving.openai.router_schemas import (
    AGENTIC_CONTEXT,
    MOST_CONTEXT_BYTES,
    NVEXT,
    NVEXT_1_2,
)
from tests.serving.openai.scripted import EndpointServer, Script, says
from weft.core.errors import CapabilityError, ModelRequestError
from weft.core.ports import ModelRequest, Program, Sampling, complete
from weft.core.values import Completion, Message, ToolSpec, Usage
from weft.serving.openai import OpenAIModel
from weft.serving.openai.contract import (
    AnswerLengths,
    ContextForm,
    ProgramContract,
    check_forms,
    salt_of,
)
from weft.serving.openai.server import Kind, Server
from weft.validation import violation

DIGEST = re.compile(r"[0-9a-f]{32}\Z")
SECRET = "the tenant's own secret"
TOOL = ToolSpec("look", "Looks.", {"type": "object"})
PROGRAM = Program("run-7", 3.0, 5.0, 4.0, "flow/notes/draft", "notes[3]/draft", True)
ASKED = question(program=PROGRAM, priority=40, sampling=Sampling(max_tokens=200))
VLLM = Server("vllm", version=(0, 32))


def sent(
    request: ModelRequest,
    *forms: str,
    server: Server = VLLM,
    salt: str | None = None,
    left_s: float | None = None,
    body: dict[str, Any] | None = None,
) -> tuple[dict[str, str], dict[str, Any]]:
    contract = ProgramContract(forms, salt)
    return contract.headers(request), contract.written(body or {}, request, server, left_s)


def context(request: ModelRequest, **settings: Any) -> dict[str, Any]:
    _, body = sent(request, "vllm_router", **settings)
    return json.loads(body["vllm_xargs"]["agentic_context"])  # type: ignore[no-any-return]


def test_nothing_is_sent_unless_it_was_switched_on(endpoints: EndpointServer) -> None:
    endpoint = endpoints.add(says("yes"))
    ask(endpoint, question())
    ask(endpoint, replace(ASKED, priority=0, sampling=Sampling()))
    assert endpoint.requests[0] == endpoint.requests[1]
    named = {name for headers in endpoint.headers for name in headers}
    assert not [name for name in named if "session" in name]
    assert sent(ASKED) == ({}, {})


def test_a_switch_sends_headers_and_fields_over_http(endpoints: EndpointServer) -> None:
    endpoint = endpoints.add(says("yes"))
    ask(endpoint, ASKED, context=["session", "vllm_router", "dynamo"])
    headers, body = endpoint.headers[-1], endpoint.requests[-1]
    assert headers["x-session-id"] == headers["x-dynamo-session-id"]
    told = json.loads(body["vllm_xargs"]["agentic_context"])
    assert told["program_id"] == headers["x-dynamo-session-id"]
    assert told["parent_program_id"] == headers["x-dynamo-parent-session-id"]
    assert body["nvext"] == {"agent_hints": {"priority": 40, "osl": 200}}


def test_calls_that_continue_one_another_have_one_session() -> None:
    def session(caller: str, run: str = "run-7", prefix: str | None = None) -> str:
        program = replace(PROGRAM, id=run, caller=caller)
        headers, _ = sent(question(program=program, cache_prefix=prefix), "session")
        return headers["x-session-id"]

    assert session("plan") == session("write")
    assert session("notes[3]/draft") == session("notes[3]/check") != session("notes[4]/draft")
    assert session("notes[3]") == session("notes[3]/draft")
    assert session("refine#1/draft") == session("refine#2/draft") != session("plan")
    assert session("plan") != session("plan", run="run-8")
    assert session("notes[3]", prefix="document") == session("notes[4]", prefix="document")
    assert session("notes[3]", prefix="document") != session("notes[3]")


def test_a_session_names_the_one_that_waits_for_it() -> None:
    inner, outer = (
        context(replace(ASKED, program=replace(PROGRAM, caller=caller)))
        for caller in ("brief/notes[3]/draft", "brief/ask")
    )
    assert inner["parent_program_id"] == outer["program_id"]
    assert outer["parent_program_id"] == outer["root_program_id"] == inner["task_id"]
    assert (inner["agent_role"], inner["blocks_parent"]) == ("subagent", True)
    top = context(replace(ASKED, program=replace(PROGRAM, caller="plan")))
    assert top["program_id"] == top["task_id"] == inner["task_id"]
    assert (top["agent_role"], top["blocks_parent"]) == ("lead", False)
    assert "parent_program_id" not in top


def test_what_is_known_of_a_call_reaches_vllms_router() -> None:
    told = context(ASKED, left_s=12.3456)
    assert told["expected_resume"] is True
    assert told["priority"] == 40
    assert told["deadline_seconds"] == 12.346
    assert told["expected_output_length"] == 200
    bare = context(question(program=Program("run-7", caller="plan")))
    assert not bare.keys() & {"expected_resume", "priority", "deadline_seconds"}
    assert "expected_output_length" not in bare


def test_a_call_with_tools_comes_back_and_the_last_call_of_a_session_does_not() -> None:
    last = replace(PROGRAM, returns=None).last_call()
    assert context(replace(ASKED, program=last))["expected_resume"] is False
    offered = replace(ASKED, program=last, tools=(TOOL,))
    assert context(offered)["expected_resume"] is True
    assert context(replace(offered, tool_choice="none"))["expected_resume"] is False
    assert PROGRAM.last_call() is PROGRAM
    assert Program("run-7", caller="refine#2/draft").last_call().returns is None


def test_dynamo_before_1_3_reads_its_context_in_the_body() -> None:
    headers, body = sent(ASKED, "dynamo_1_2")
    assert headers == {}
    newer, _ = sent(ASKED, "dynamo")
    told = body["nvext"]["agent_context"]
    assert told["session_type_id"] == "weft"
    assert told["trajectory_id"] == newer["x-dynamo-session-id"]
    assert told["parent_trajectory_id"] == newer["x-dynamo-parent-session-id"]
    assert violation(body["nvext"], NVEXT_1_2) is None
    assert violation(body["nvext"], NVEXT) is not None, "later versions refuse it"


@pytest.mark.parametrize("form", ["vllm_router", "dynamo", "dynamo_1_2"])
@pytest.mark.parametrize("kind", ["openai", "llamacpp"])
def test_servers_that_would_refuse_a_field_never_get_it(form: str, kind: Kind) -> None:
    with pytest.raises(CapabilityError, match=f"{kind}.*{form}"):
        sent(ASKED, form, server=Server(kind))
    headers, body = sent(ASKED, "session", server=Server(kind))
    assert (list(headers), body) == (["x-session-id"], {})


def test_a_call_without_a_program_says_only_what_is_known() -> None:
    headers, body = sent(question(), "session", "vllm_router", "dynamo")
    assert (headers, body) == ({}, {})


def test_what_the_user_wrote_stays() -> None:
    theirs = {
        "vllm_xargs": {"agentic_context": "{}", "mine": 1},
        "nvext": {"agent_hints": {"osl": 3}},
        "cache_salt": "theirs",
    }
    _, body = sent(ASKED, "vllm_router", "dynamo", salt="ours", body=theirs)
    assert body["vllm_xargs"] == theirs["vllm_xargs"]
    assert body["nvext"] == {"agent_hints": {"osl": 3}, "cache_salt": "ours"}
    assert body["cache_salt"] == "theirs"
    _, added = sent(ASKED, "vllm_router", body={"vllm_xargs": {"mine": 1}})
    assert added["vllm_xargs"].keys() == {"mine", "agentic_context"}
    assert theirs["vllm_xargs"] == {"agentic_context": "{}", "mine": 1}, "changed in place"


def test_a_salt_keeps_caches_apart_and_stays_secret(
    endpoints: EndpointServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENANT", SECRET)
    salt = salt_of(SECRET)
    endpoint = endpoints.add(
        lambda body: Script(status=400, plain=f'{{"message": "no {body["cache_salt"]}"}}')
    )
    with pytest.raises(ModelRequestError) as caught:
        ask(endpoint, cache_salt_env="TENANT")
    assert endpoint.requests[-1]["cache_salt"] == salt
    assert re.fullmatch(r"[\w-]{43}", salt)
    assert salt_of(SECRET) == salt != salt_of(SECRET + "2")
    assert "***" in str(caught.value)
    model = OpenAIModel(endpoint.base_url, "m", cache_salt_env="TENANT")
    for text in (str(caught.value), repr(model), repr(model._endpoint), str(endpoint.headers)):
        assert salt not in text
        assert SECRET not in text


def test_a_salt_that_would_be_ignored_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in ("other", "openai", "sglang", "llamacpp"):
        with pytest.raises(CapabilityError, match="cache_salt"):
            sent(ASKED, server=Server(kind), salt="s")
    _, body = sent(ASKED, "dynamo", server=Server("other"), salt="s")
    assert body["nvext"]["cache_salt"] == "s"
    assert "cache_salt" not in body
    monkeypatch.delenv("TENANT", raising=False)
    with pytest.raises(ValueError, match="cache_salt_env"):
        OpenAIModel("http://127.0.0.1:1/v1", "m", cache_salt_env="TENANT")


def test_forms_are_one_or_a_list() -> None:
    assert check_forms("session") == ("session",)
    assert check_forms(["dynamo", "session", "dynamo"]) == ("session", "dynamo")
    assert check_forms(()) == ()


@pytest.mark.parametrize(
    ("forms", "why"),
    [
        (3, "not 3"),
        ({"session": True}, "not {'session'"),
        ("sessions", "'sessions'"),
        (["session", ["dynamo"]], "'dynamo'"),
        (["dynamo", "dynamo_1_2"], "not both"),
    ],
)
def test_wrong_forms_are_named(forms: object, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        check_forms(forms)


def answer(tokens: int, finish: Any = "stop") -> Completion:
    return Completion("x", finish, usage=Usage(1, tokens, requests=1))


def test_lengths_are_those_of_earlier_answers_of_the_node() -> None:
    lengths = AnswerLengths()
    assert lengths.expected(ASKED) == 200
    lengths.learn(ASKED, answer(200, "length"))
    assert lengths.expected(ASKED) == 200
    for _ in range(30):
        lengths.learn(ASKED, answer(50))
    assert lengths.expected(ASKED) == 50
    assert lengths.expected(replace(ASKED, sampling=Sampling(max_tokens=20))) == 20
    assert lengths.expected(replace(ASKED, sampling=Sampling())) == 50
    other = replace(ASKED, program=replace(PROGRAM, node="flow/other"))
    assert lengths.expected(other) == 200
    assert lengths.expected(question()) is None


def test_an_expected_length_comes_from_answers_over_http(endpoints: EndpointServer) -> None:
    endpoint = endpoints.add(says("one two three"))

    async def twice() -> None:
        async with aclosing(OpenAIModel(endpoint.base_url, "m", context=["dynamo"])) as model:
            for _ in range(2):
                await complete(model, ASKED)

    asyncio.run(twice())
    assert [body["nvext"]["agent_hints"]["osl"] for body in endpoint.requests] == [200, 3]


ANY = st.text(max_size=30) | st.sampled_from(["a\r\nx-evil: 1", "\0", "ä" * 300, "", "\ud800"])
NODES = st.sampled_from(["", "a", "a/b", "n[1]", "n[1]/b", "l#2/b", "n~2/x[3]"]) | ANY
PROGRAMS = st.builds(
    Program,
    ANY,
    node=ANY,
    caller=NODES,
    returns=st.sampled_from([None, True, False]),
)
REQUESTS = st.builds(
    ModelRequest,
    messages=ANY.map(lambda text: (Message("user", text),)),
    sampling=st.builds(Sampling, max_tokens=st.none() | st.integers(1, 2**31)),
    priority=st.integers() | st.just(0),
    cache_prefix=st.none() | ANY,
    program=st.none() | PROGRAMS,
    tools=st.sampled_from([(), (TOOL,)]),
)


@given(REQUESTS, st.none() | st.floats(0, 1e9))
def test_every_call_fits_the_routers_schemas_and_gives_no_name_away(
    request: ModelRequest, left_s: float | None
) -> None:
    headers, body = sent(request, "session", "vllm_router", "dynamo", left_s=left_s)
    assert all(DIGEST.match(value) for value in headers.values())
    assert set(headers) <= {"x-session-id", "x-dynamo-session-id", "x-dynamo-parent-session-id"}
    if request.program is not None:
        text = body["vllm_xargs"]["agentic_context"]
        assert text.isascii()
        assert len(text) < MOST_CONTEXT_BYTES
        assert violation(json.loads(text), AGENTIC_CONTEXT) is None
        told = json.loads(text)
        assert told.get("parent_program_id") != told["program_id"]
    assert violation(body.get("nvext", {}), NVEXT) is None
    _, old = sent(request, "dynamo_1_2")
    assert violation(old.get("nvext", {}), NVEXT_1_2) is None
    for name in (request.cache_prefix, *_names(request.program)):
        if name is not None and len(name) > 8:
            with suppress(UnicodeEncodeError):
                assert name not in json.dumps([headers, body, old], ensure_ascii=False)


def _names(program: Program | None) -> tuple[str, ...]:
    return () if program is None else (program.id, program.node, program.caller)


def test_the_page_names_every_form_and_field() -> None:
    page = (Path(__file__).parents[3] / "docs/serving/program-contract.md").read_text("utf-8")
    told, (headers, body) = context(ASKED, left_s=1.0), sent(ASKED, "session", "dynamo", salt="s")
    _, old = sent(ASKED, "dynamo_1_2")
    assert set(get_args(ContextForm)) <= set(re.findall(r"`context: (\w+)`", page))
    hints = {f"agent_hints.{name}" for name in body["nvext"]["agent_hints"]}
    for name in (*told, *headers, *hints, *old["nvext"]["agent_context"], "cache_salt"):
        assert f"`{name}`" in page, name


def test_the_schemas_refuse_what_their_readers_refuse() -> None:
    good = context(ASKED)
    for wrong in (
        {"program_id": ""},
        {"program_id": "x" * 257},
        {"priority": 1.5},
        {"deadline_seconds": -1},
        {"expected_resume": "yes"},
        {"expected_output_length": -1},
        {"other": 1},
    ):
        assert violation({**good, **wrong}, AGENTIC_CONTEXT) is not None, wrong
    del good["parent_program_id"]
    assert violation(good, AGENTIC_CONTEXT) is not None
    for wrong in ({"priority": 2**31}, {"osl": -1}, {"other": 1}):
        assert violation({"agent_hints": wrong}, NVEXT) is not None, wrong
    assert violation({"agent_context": {}}, NVEXT) is not None
