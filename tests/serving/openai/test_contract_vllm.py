"""vLLM's own request parser reads what weft sends, byte by byte. No server is started."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from tests.serving.openai.endpoint_calls import ask, question
from tests.serving.openai.scripted import EndpointServer, Tokenizer, says
from tests.serving.openai.test_contract import ASKED, TOOL
from weft.core.ports import ModelRequest

pytest.importorskip("vllm", reason="vLLM is not installed")

FORMS = ("session", "vllm_router", "dynamo", "dynamo_1_2")
READER = """
import json, sys
from vllm.entrypoints.generate.base.serving import GenerateBaseServing as Serving
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.entrypoints.openai.completion.protocol import CompletionRequest

class Raw:
    def __init__(self, headers):
        from starlette.datastructures import Headers
        self.headers = Headers(headers)

found = []
for path, headers, body in json.load(sys.stdin):
    kind = ChatCompletionRequest if "chat" in path else CompletionRequest
    try:
        read = kind.model_validate_json(body)
    except ValueError as error:
        found.append({"refused": str(error)})
        continue
    params = read.to_sampling_params(64, {})
    found.append({
        "session": Serving._get_session_id(read, Raw(headers)),
        "priority": Serving._get_priority(read, Raw(headers)),
        "salt": read.cache_salt,
        "xargs": read.vllm_xargs,
        "extra_args": params.extra_args,
        "unknown": sorted(read.model_extra or {}),
    })
sys.stdout.write("\\n" + json.dumps(found))
"""

Call = tuple[str, dict[str, str], str]


def read(calls: list[Call]) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-c", READER],
        input=json.dumps(calls),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.rpartition("\n")[2])  # type: ignore[no-any-return]


def test_vllm_reads_every_form_and_refuses_the_object_that_the_router_documents(
    endpoints: EndpointServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENANT", "secret")
    endpoint = endpoints.add(says("yes"), tokenizer=Tokenizer())
    chat = ASKED
    requests: list[ModelRequest] = [
        chat,
        replace(chat, tools=(TOOL,)),
        replace(chat, messages=(), prompt_token_ids=(1, 2, 3)),
        question(),
    ]
    calls: list[Call] = []
    for request in requests:
        for forms in (FORMS[:3], (FORMS[0], FORMS[1], FORMS[3]), ()):
            ask(endpoint, request, context=forms, cache_salt_env="TENANT", priority=True)
            body = json.dumps(endpoint.requests[-1])
            calls.append((endpoint.paths[-1], endpoint.headers[-1], body))
    wrong = json.loads(calls[0][2])
    wrong["vllm_xargs"]["agentic_context"] = json.loads(wrong["vllm_xargs"]["agentic_context"])
    *answers, refused = read([*calls, (calls[0][0], calls[0][1], json.dumps(wrong))])
    for (_, headers, body), answer in zip(calls, answers, strict=True):
        sent = json.loads(body)
        assert answer["session"] == headers.get("x-session-id")
        assert answer["priority"] == sent.get("priority", 0)
        assert answer["salt"] == sent["cache_salt"]
        assert answer["xargs"] == sent.get("vllm_xargs")
        assert answer["unknown"] == (["nvext"] if "nvext" in sent else [])
        if sent.get("vllm_xargs"):
            told = answer["extra_args"]["agentic_context"]
            assert json.loads(told)["program_id"] == headers["x-session-id"]
    assert "agentic_context" in refused["refused"]
