from pathlib import Path

from pydantic import BaseModel

import weft


class Answer(BaseModel):
    answer: str
    citations: list[str]


def retrieve(question: str, folder: str) -> list[tuple[str, str]]:
    words = set(question.lower().split())
    texts = [(file.name, file.read_text()) for file in sorted(Path(folder).iterdir())]
    texts.sort(key=lambda text: -len(words & set(text[1].lower().split())))
    return texts[:2]


def check(answer: Answer, passages: list[tuple[str, str]]) -> dict:
    known = {name for name, _ in passages}
    return {
        "answer": answer.answer,
        "citations": [name for name in answer.citations if name in known],
    }


flow = weft.Flow("rag", models={"llm": "local:smollm2-135m-instruct"})
question = flow.input("question", str)
passages = flow.call(retrieve, question, flow.input("folder", str))
answer = flow.model(
    "llm",
    "{% for name, text in passages %}[{{ name }}] {{ text }}\n{% endfor %}\n"
    "Answer with citations: {{ question }}",
    schema=Answer,
)
flow.output(answer=flow.call(check, answer, passages))


async def run(llm, folder: Path) -> object:
    result = await flow.run(
        question="How do bees show where food is?",
        folder=str(folder / "documents"),
        models={"llm": llm},
    )
    return result["answer"]
