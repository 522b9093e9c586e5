from pathlib import Path
from typing import TypedDict

from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel


class Answer(BaseModel):
    answer: str
    citations: list[str]


class State(TypedDict, total=False):
    question: str
    folder: str
    passages: list[tuple[str, str]]
    answer: dict


def retrieve(state: State) -> State:
    words = set(state["question"].lower().split())
    files = sorted(Path(state["folder"]).iterdir())
    texts = [(file.name, file.read_text()) for file in files]
    texts.sort(key=lambda text: -len(words & set(text[1].lower().split())))
    return {"passages": texts[:2]}


async def answer(state: State, llm) -> State:
    passages = "\n".join(f"[{name}] {text}" for name, text in state["passages"])
    reply = await llm.ainvoke(f"{passages}\n\nAnswer with citations: {state['question']}")
    return {"answer": Answer.model_validate_json(reply.content).model_dump()}


def check(state: State) -> State:
    known = {name for name, _ in state["passages"]}
    kept = [name for name in state["answer"]["citations"] if name in known]
    return {"answer": state["answer"] | {"citations": kept}}


async def run(llm, folder: Path) -> object:
    async def ask(state: State) -> State:
        return await answer(state, llm)

    graph = StateGraph(State)
    graph.add_node("retrieve", retrieve)
    graph.add_node("ask", ask)
    graph.add_node("check", check)
    graph.add_edge(START, "retrieve")
    graph.add_edge("retrieve", "ask")
    graph.add_edge("ask", "check")
    graph.add_edge("check", END)
    state = {"question": "How do bees show where food is?", "folder": str(folder / "documents")}
    return (await graph.compile().ainvoke(state))["answer"]
