from pathlib import Path

import weft


def source(path: str) -> str:
    return Path(path).read_text()


def verdict(verdicts: list[str]) -> str:
    rejected = [text for text in verdicts if text.startswith("reject: ")]
    return f"rejected: {rejected[0][8:]}" if rejected else "accepted"


flow = weft.Flow("review", models={"llm": "local:smollm2-135m-instruct"})
files = flow.input("files", list[str])


def review(file):
    text = flow.call(source, file)
    verdicts = flow.map(
        ["style", "bugs", "security"],
        lambda reviewer: flow.model("llm", f"Review for {reviewer}:\n{text}"),
    )
    return flow.call(verdict, verdicts)


flow.output(verdicts=flow.map(files, review))


async def run(llm, folder: Path) -> object:
    files = sorted((folder / "sources").iterdir())
    result = await flow.run(files=[str(file) for file in files], models={"llm": llm})
    return dict(zip((file.name for file in files), result["verdicts"], strict=True))
