"""LangGraph without a checkpointer: a node per call, and the state that its guide suggests.

Its nodes call the server with the same client as bare asyncio does, so that only the graph differs.
"""

from __future__ import annotations

import asyncio
import operator
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph

from evals.graphbit.scenarios import BEFORE, CASES, Program, Scenario
from evals.graphbit.systems.on_asyncio import ChatClient


class Answers(TypedDict):
    """All answers so far, and the prompt that a run begins with."""

    prompt: str
    answers: Annotated[list[str], operator.add]


def build(_system: str, scenario: Scenario, base_url: str) -> Program:
    """The compiled graph, and how one calls it."""
    client = ChatClient(base_url)

    def node(prompt: str | None, *, follows: bool = False) -> Any:
        async def call(state: Answers) -> dict[str, list[str]]:
            text = state["prompt"] if prompt is None else prompt
            text += f"{BEFORE}{state['answers'][-1]}" if follows else ""
            return {"answers": [await client.ask(text)]}

        return call

    graph = _graph(scenario, node)

    async def run(prompt: str = "") -> list[str]:
        ended = await graph.ainvoke({"prompt": prompt, "answers": []})
        return list(ended["answers"])[-scenario.answers if scenario.shape == "fanout" else -1 :]

    async def many() -> list[str]:
        async with asyncio.TaskGroup() as group:
            runs = [group.create_task(run(prompt)) for prompt in scenario.prompts]
        return [each.result()[0] for each in runs]

    return Program(many if scenario.shape == "many" else run, client.aclose)


def _graph(scenario: Scenario, node: Any) -> Any:
    """The compiled graph; `node` makes the function of a node."""
    builder: Any = StateGraph(Answers)
    match scenario.shape:
        case "many":
            builder.add_node("call", node(None))
            builder.add_edge(START, "call")
        case "fanout":
            for number, prompt in enumerate(scenario.prompts):
                builder.add_node(f"n{number}", node(prompt))
                builder.add_edge(START, f"n{number}")
        case "branch":
            builder.add_node("kind", node(scenario.prompts[0]))
            builder.add_edge(START, "kind")
            for case, prompt in CASES.items():
                builder.add_node(case, node(prompt))
                builder.add_edge(case, END)
            builder.add_conditional_edges("kind", lambda state: state["answers"][-1], list(CASES))
        case _:
            for number, prompt in enumerate(scenario.prompts):
                builder.add_node(f"n{number}", node(prompt, follows=number > 0))
                builder.add_edge(f"n{number - 1}" if number else START, f"n{number}")
    return builder.compile()
