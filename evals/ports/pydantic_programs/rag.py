from pathlib import Path

from pydantic import BaseModel
from pydantic_ai import Agent, PromptedOutput


class Answer(BaseModel):
    answer: str
    citations: list[str]


def retrieve(question: str, folder: Path) -> list[tuple[str, str]]:
    words = set(question.lower().split())
    texts = [(file.name, file.read_text()) for file in sorted(folder.iterdir())]
    texts.sort(key=lambda text: -len(words & set(text[1].lower().split())))
    return texts[:2]


async def run(llm, folder: Path) -> object:
    question = "How do bees show where food is?"
    passages = retrieve(question, folder / "documents")
    prompt = "\n".join(f"[{name}] {text}" for name, text in passages)
    agent = Agent(llm.pydantic, output_type=PromptedOutput(Answer))
    answer = (await agent.run(f"{prompt}\n\nAnswer with citations: {question}")).output
    known = {name for name, _ in passages}
    kept = [name for name in answer.citations if name in known]
    return {"answer": answer.answer, "citations": kept}
