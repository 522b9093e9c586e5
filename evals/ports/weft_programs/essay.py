from pathlib import Path

import weft


def write(last):
    draft = flow.model("llm", f"Write about bees. Before: {last.draft}. {last.criticism}")
    criticism = flow.model("llm", f"Criticise: {draft}")
    return {"draft": draft, "criticism": criticism}


flow = weft.Flow("essay", models={"llm": "local:smollm2-135m-instruct"})
start = {"draft": "", "criticism": ""}
essay = flow.loop(start, write, until=lambda last: last.criticism == "good", max=5)
flow.output(draft=essay.draft)


async def run(llm, folder: Path) -> object:
    return (await flow.run(models={"llm": llm}))["draft"]
