from pathlib import Path

import weft

PROMPTS = {"short": "Even or odd: {}", "careful": "Think step by step. Even or odd: {}"}
CASES = [(number, "odd" if number % 2 else "even") for number in range(50)]

flow = weft.Flow("prompts", models={"llm": "local:smollm2-135m-instruct"})
prompts = [[prompt.format(number) for number, _ in CASES] for prompt in PROMPTS.values()]
answers = flow.map(
    prompts, lambda cases: flow.map(cases, lambda prompt: flow.model("llm", f"{prompt}"))
)
flow.output(answers=answers)


async def run(llm, folder: Path) -> object:
    answers = (await flow.run(models={"llm": llm}))["answers"]
    return {
        name: sum(answer == expected for answer, (_, expected) in zip(found, CASES, strict=True))
        / len(CASES)
        for name, found in zip(PROMPTS, answers, strict=True)
    }
