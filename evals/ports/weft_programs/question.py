from pathlib import Path

import weft

flow = weft.Flow("question", models={"llm": "local:smollm2-135m-instruct"})
guesses = flow.input("guesses", list[str])
question = flow.model("llm", "Ask a simple question")


def evaluate(last):
    verdict = flow.model("llm", f"Evaluate: {question} {{{{ guesses[last.asked] }}}}")
    return {"asked": last.asked + 1, "state": verdict}


quiz = flow.loop({"asked": 0}, evaluate, until=lambda last: last.state == "correct", max=5)
flow.output(quiz=quiz)


async def run(llm, folder: Path) -> object:
    return (await flow.run(guesses=["Lyon", "Paris"], models={"llm": llm}))["quiz"]
