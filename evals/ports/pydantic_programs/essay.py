from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic_graph import GraphBuilder, StepContext


@dataclass
class State:
    draft: str = ""
    criticism: str = ""
    rounds: int = 0


builder = GraphBuilder(state_type=State, deps_type=object, output_type=str)


@builder.step
async def write(context: StepContext[State, Any, Any]) -> None:
    state = context.state
    before = f" Before: {state.draft}. {state.criticism}" if state.draft else ""
    state.draft = await context.deps.ask(f"Write about bees.{before}")
    state.rounds += 1


@builder.step
async def criticise(context: StepContext[State, Any, None]) -> str:
    state = context.state
    state.criticism = await context.deps.ask(f"Criticise: {state.draft}")
    return "good" if state.criticism == "good" or state.rounds == 5 else "again"


@builder.step
async def finish(context: StepContext[State, Any, str]) -> str:
    return context.state.draft


good = builder.match(str, matches=lambda verdict: verdict == "good")
builder.add(
    builder.edge_from(builder.start_node).to(write),
    builder.edge_from(write).to(criticise),
    builder.edge_from(criticise).to(
        builder.decision().branch(good.to(finish)).branch(builder.match(str).to(write))
    ),
    builder.edge_from(finish).to(builder.end_node),
)
graph = builder.build()


async def run(llm, folder: Path) -> object:
    return await graph.run(state=State(), deps=llm)
