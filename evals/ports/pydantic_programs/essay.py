from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic_graph import BaseNode, End, Graph, GraphRunContext


@dataclass
class State:
    draft: str = ""
    criticism: str = ""
    rounds: int = 0


@dataclass
class Write(BaseNode[State, Any, str]):
    async def run(self, ctx: GraphRunContext[State, Any]) -> Criticise:
        state = ctx.state
        before = f" Before: {state.draft}. {state.criticism}" if state.draft else ""
        state.draft = await ctx.deps(f"Write about bees.{before}")
        state.rounds += 1
        return Criticise()


@dataclass
class Criticise(BaseNode[State, Any, str]):
    async def run(self, ctx: GraphRunContext[State, Any]) -> Write | End[str]:
        ctx.state.criticism = await ctx.deps(f"Criticise: {ctx.state.draft}")
        if ctx.state.criticism == "good" or ctx.state.rounds == 5:
            return End(ctx.state.draft)
        return Write()


async def run(llm, folder: Path) -> object:
    graph = Graph(nodes=(Write, Criticise))
    return (await graph.run(Write(), state=State(), deps=llm.ask)).output
