import operator
from pathlib import Path
from typing import Annotated, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

REVIEWERS = ("style", "bugs", "security")


class State(TypedDict, total=False):
    files: list[str]
    verdicts: Annotated[list[tuple[str, str]], operator.add]
    report: dict[str, str]


def spread(state: State) -> list[Send]:
    return [
        Send("review", {"file": file, "reviewer": reviewer})
        for file in state["files"]
        for reviewer in REVIEWERS
    ]


def summarise(state: State) -> State:
    report = {}
    for file in state["files"]:
        verdicts = [verdict for name, verdict in state["verdicts"] if name == file]
        rejected = [verdict for verdict in verdicts if verdict.startswith("reject: ")]
        name = Path(file).name
        report[name] = f"rejected: {rejected[0][8:]}" if rejected else "accepted"
    return {"report": report}


async def run(llm, folder: Path) -> object:
    async def review(task: dict) -> State:
        text = Path(task["file"]).read_text()
        reply = await llm.ainvoke(f"Review for {task['reviewer']}:\n{text}")
        return {"verdicts": [(task["file"], reply.content)]}

    graph = StateGraph(State)
    graph.add_node("review", review)
    graph.add_node("summarise", summarise)
    graph.add_conditional_edges(START, spread, ["review"])
    graph.add_edge("review", "summarise")
    graph.add_edge("summarise", END)
    files = sorted(str(file) for file in (folder / "sources").iterdir())
    return (await graph.compile().ainvoke({"files": files}))["report"]
