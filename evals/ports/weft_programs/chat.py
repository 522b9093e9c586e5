from pathlib import Path

import weft

flow = weft.Flow("chat", models={"llm": "local:smollm2-135m-instruct"})
thread, text = flow.input("thread", str), flow.input("text", str)
flow.output(reply=flow.model("llm", text, conversation=thread))


async def turn(llm, file: Path, text: str) -> str:
    result = await flow.run(thread="ada", text=text, models={"llm": llm}, journal=file)
    return result["reply"]


async def run(llm, folder: Path) -> object:
    file = folder / "chat.sqlite"
    first = await turn(llm, file, "My name is Ada")
    return [first, await turn(llm, file, "What is my name?")]
