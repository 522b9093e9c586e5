"""brief.yaml in Python: the same graph, written with functions. Run it: python brief.py"""

from pathlib import Path

from tools import compose, keywords, list_documents, most_telling, read_document, reading_minutes

import weft

flow = weft.Flow(
    "brief", models={"small": "local:smollm2-135m-instruct"}, folder=Path(__file__).parent
)
folder = flow.input("folder", str, default="documents")
limit = flow.input("limit", int, default=8)

files = flow.tool(list_documents, folder=folder, limit=limit)
documents = flow.map(files, lambda path: flow.tool(read_document, path=path))
notes = flow.map(
    documents,
    lambda document: flow.model(
        "small",
        f"Summarize this text in one short sentence:\n\n{document.text}",
        schema={"type": "string", "minLength": 60, "maxLength": 240},
        temperature=0,
        retry=2,
    ),
    width=8,
)
words = flow.tool(keywords, documents=documents)
minutes = flow.tool(reading_minutes, documents=documents)
titles = flow.model(
    "small",
    "A magazine has these articles: {{ documents | map(attribute='title') | join('; ') }}.\n"
    "Write a short title for the magazine.\n",
    schema={"type": "string", "minLength": 3, "maxLength": 60},
    samples=6,
    temperature=0.7,
)
title = flow.reduce(most_telling, titles, keywords=words)
report = flow.tool(
    compose, title=title, notes=notes, documents=documents, words=words, minutes=minutes
)
flow.output(brief=report)

if __name__ == "__main__":
    print(flow.run_sync().outputs["brief"])
