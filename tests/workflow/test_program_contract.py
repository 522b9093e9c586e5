"""A workflow tells its router which calls belong together, and which of them come back."""

from __future__ import annotations

import json
from typing import Any

from tests.serving.openai.scripted import EndpointServer, says
from weft import Flow, loads

FORMS = ["session", "vllm_router"]


def flow_text(address: str) -> str:
    return f"""
name: brief
inputs:
  topics: {{type: array, items: {{type: string}}}}
models:
  m:
    use: openai
    model: m
    base_url: {address}
    options: {{context: [session, vllm_router]}}
nodes:
  plan: {{model: m, prompt: "Plan.", max_tokens: 50}}
  notes:
    map: "{{{{ topics }}}}"
    after: [plan]
    do:
      nodes:
        draft: {{model: m, prompt: "Draft {{{{ item }}}}."}}
        check: {{model: m, prompt: "Check {{{{ draft }}}}."}}
      result: "{{{{ check }}}}"
  write: {{model: m, prompt: "Write {{{{ notes }}}} {{{{ plan }}}}."}}
outputs:
  text: "{{{{ write }}}}"
"""


def told(request: dict[str, Any]) -> dict[str, Any]:
    return json.loads(request["vllm_xargs"]["agentic_context"])  # type: ignore[no-any-return]


def test_calls_of_an_item_are_a_session_inside_the_run(endpoints: EndpointServer) -> None:
    endpoint = endpoints.add(says("yes"))
    result = loads(flow_text(endpoint.base_url)).run_sync(topics=["tea", "gold"])
    assert result["text"] == "yes"
    calls: dict[str, list[dict[str, Any]]] = {}
    for request in endpoint.requests:
        name = request["messages"][-1]["content"].split()[0].strip(".")
        calls.setdefault(name, []).append(told(request))
    (plan,), (write,) = calls["Plan"], calls["Write"]
    assert plan["program_id"] == write["program_id"] == plan["task_id"]
    assert plan["expected_output_length"] == 50
    drafts, checks = ({each["program_id"] for each in calls[n]} for n in ("Draft", "Check"))
    assert drafts == checks
    assert len(drafts) == 2
    inner = [*calls["Draft"], *calls["Check"]]
    assert {each["parent_program_id"] for each in inner} == {plan["program_id"]}
    assert [plan["expected_resume"], write["expected_resume"]] == [True, False]
    assert {each["expected_resume"] for each in calls["Draft"]} == {True}
    assert {each["expected_resume"] for each in calls["Check"]} == {False}
    sessions = {headers.get("x-session-id") for headers in endpoint.headers} - {None}
    assert sessions == drafts | {plan["program_id"]}


def test_an_agent_comes_back_as_long_as_it_has_tools(endpoints: EndpointServer) -> None:
    endpoint = endpoints.add(says("I know."))
    model = {
        "use": "openai",
        "model": "m",
        "base_url": endpoint.base_url,
        "options": {"context": FORMS},
    }
    flow = Flow("ask", models={"m": model})

    def price(item: str) -> int:
        """The price of an item."""
        return len(item)

    flow.output(r=flow.model("m", "What?", tools=[price], agent="parallel-react"))
    assert flow.run_sync()["r"] == "I know."
    (request,) = endpoint.requests
    assert told(request)["expected_resume"] is True
    assert told(request)["agent_role"] == "subagent"
