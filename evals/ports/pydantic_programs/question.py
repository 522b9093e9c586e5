from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic_graph import GraphBuilder, StepContext

ANSWERS = ["Lyon", "Paris"]


@dataclass
class State:
    question: str = ""
    asked: int = 0


builder = GraphBuilder(state_type=State, deps_type=object, output_type=str)


@builder.step
async def ask(context: StepContext[State, Any, None]) -> None:
    context.state.question = await context.deps.ask("Ask a simple question")


@builder.step
async def evaluate(context: StepContext[State, Any, None]) -> str:
    state = context.state
    state.asked += 1
    return await context.deps.ask(f"Evaluate: {state.question} {ANSWERS[state.asked - 1]}")


right = builder.match(str, matches=lambda reply: reply == "correct")
builder.add(
    builder.edge_from(builder.start_node).to(ask),
    builder.edge_from(ask).to(evaluate),
    builder.edge_from(evaluate).to(
        builder.decision()
        .branch(right.to(builder.end_node))
        .branch(builder.match(str).to(evaluate))
    ),
)
graph = builder.build()


async def run(llm, folder: Path) -> object:
    state = State()
    verdict = await graph.run(state=state, deps=llm)
    return {"asked": state.asked, "state": verdict}
