from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic_graph import BaseNode, End, Graph, GraphRunContext

ANSWERS = ["Lyon", "Paris"]


@dataclass
class State:
    question: str = ""
    asked: int = 0


@dataclass
class Ask(BaseNode[State, Any, str]):
    async def run(self, ctx: GraphRunContext[State, Any]) -> Evaluate:
        ctx.state.question = await ctx.deps("Ask a simple question")
        return Evaluate()


@dataclass
class Evaluate(BaseNode[State, Any, str]):
    async def run(self, ctx: GraphRunContext[State, Any]) -> Evaluate | End[str]:
        answer = ANSWERS[ctx.state.asked]
        reply = await ctx.deps(f"Evaluate: {ctx.state.question} {answer}")
        ctx.state.asked += 1
        return End(reply) if reply == "correct" else Evaluate()


async def run(llm, folder: Path) -> object:
    async def ask(prompt: str) -> str:
        return await llm.ask(prompt)

    state = State()
    graph = Graph(nodes=(Ask, Evaluate))
    result = await graph.run(Ask(), state=state, deps=ask)
    return {"asked": state.asked, "state": result.output}
