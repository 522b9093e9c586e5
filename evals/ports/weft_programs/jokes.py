from pathlib import Path

import weft

flow = weft.Flow("jokes", models={"llm": "local:smollm2-135m-instruct"})
topic = flow.input("topic", str)
subjects = flow.model("llm", f"Three subjects of {topic}, as a JSON list", schema=list[str])
jokes = flow.map(subjects, lambda subject: flow.model("llm", f"A joke about {subject}"))
best = flow.model("llm", "The number of the best:\n{{ jokes | join('\\n') }}", schema=int)
flow.output(best="{{ jokes[best] }}")


async def run(llm, folder: Path) -> object:
    return (await flow.run(topic="animals", models={"llm": llm}))["best"]
