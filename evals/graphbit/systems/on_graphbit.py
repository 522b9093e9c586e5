"""GraphBit 0.6.8 with its executor (`graphbit`), and its client alone (`graphbit_client`).

The first is the way of its guide, the second that of its own benchmark, which has no workflows.

Of its providers two take an address, `azurellm` and `bytedance`; this is the second, which makes
calls of the OpenAI protocol. `init` and the executor are made once, runs are asynchronous.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import graphbit

from evals.graphbit.scenarios import BEFORE, CASES, MODEL, Program, Scenario

_KEY = "k" * 40
"""It refuses shorter ones; the server reads none."""


def build(system: str, scenario: Scenario, base_url: str) -> Program:
    """The program for the shape of `scenario`."""
    graphbit.init()
    config = graphbit.LlmConfig.bytedance(_KEY, MODEL, base_url)
    return _calls(config, scenario) if system == "graphbit_client" else _workflow(config, scenario)


def _calls(config: Any, scenario: Scenario) -> Program:
    """Calls of the client; several at once as a batch."""
    client = graphbit.LlmClient(config)

    async def chain() -> list[str]:
        answer = await client.complete_async(scenario.prompts[0])
        for prompt in scenario.prompts[1:]:
            answer = await client.complete_async(f"{prompt}{BEFORE}{answer}")
        return [answer]

    async def together() -> Sequence[str]:
        prompts = list(scenario.prompts)
        return list(await client.complete_batch(prompts, max_concurrency=len(prompts)))

    async def branch() -> list[str]:
        kind = await client.complete_async(scenario.prompts[0])
        return [await client.complete_async(CASES[kind])]

    if scenario.shape == "branch":
        return Program(branch)
    return Program(chain if scenario.shape in ("single", "chain") else together)


def _workflow(config: Any, scenario: Scenario) -> Program:
    """An agent node per call; it puts the answers of a node's parents before its prompt itself."""
    executor = graphbit.Executor(config)
    if scenario.shape == "many":
        flows = [_of([_agent(0, prompt)], []) for prompt in scenario.prompts]
    elif scenario.shape == "branch":
        agents = [_agent(0, scenario.prompts[0]), *map(_agent, (1, 2), CASES.values(), CASES)]
        kind = graphbit.Node.condition("kind", lambda context: str(context["parent_output"]))
        flows = [_of([agents[0], kind, *agents[1:]], [(0, 1), (1, 2), (1, 3)])]
    else:
        agents = [_agent(number, prompt) for number, prompt in enumerate(scenario.prompts)]
        pairs = [(n, n + 1) for n in range(len(agents) - 1)] if scenario.shape == "chain" else []
        flows = [_of(agents, pairs)]

    async def one(flow: Any) -> list[str]:
        result = await executor.run_async(flow)
        if not result.is_success():
            raise RuntimeError(str(result.state()))
        outputs = result.get_all_node_outputs()
        if scenario.shape == "branch":
            return [outputs[name] for name in CASES if name in outputs]
        names = [f"n{number}" for number in range(len(scenario.prompts))]
        if scenario.shape == "many":
            names = names[:1]
        return [outputs[name] for name in names][-scenario.answers :]

    async def all_at_once() -> list[str]:
        async with asyncio.TaskGroup() as group:
            runs = [group.create_task(one(flow)) for flow in flows]
        return [answer for run in runs for answer in run.result()]

    return Program(all_at_once)


def _agent(number: int, prompt: str, name: str = "") -> Any:
    return graphbit.Node.agent(name=name or f"n{number}", prompt=prompt, agent_id=f"a{number}")


def _of(nodes: Sequence[Any], pairs: Sequence[tuple[int, int]]) -> Any:
    flow = graphbit.Workflow("scenario")
    ids = [flow.add_node(node) for node in nodes]
    for one, other in pairs:
        flow.connect(ids[one], ids[other])
    return flow
