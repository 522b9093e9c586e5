"""Long-term memory: kept between runs, found by BM25 or by embedding, added exactly once."""

from __future__ import annotations

import asyncio
import json
import math
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from tests.serving.openai.scripted import Endpoint, EndpointServer, Json, Script
from weft.core.values import ToolCall
from weft.errors import (
    BuildError,
    ModelNotFound,
    ModelOutputError,
    SourceError,
    StoreError,
    ToolArgumentError,
)
from weft.serve import OpenAIEmbeddings
from weft.testing import FakeModel, Reply, ScriptedAgent, call_tool

FLOW = """
name: f
inputs: {{text: {{type: string, default: "Ada likes tea"}}}}
models: {{small: "local:m"}}
tools:
  facts: {tool}
nodes:
  added: {{tool: facts.add, with: {{text: "{{{{ text }}}}", tags: [people]}}}}
  found: {{tool: facts.search, with: {{query: "tea?", k: 3}}, after: [added]}}
outputs: {{id: "{{{{ added }}}}", found: "{{{{ found }}}}"}}
"""
BM25 = "{memory: ./facts.sqlite, search: bm25}"


def flow(folder: Path, tool: str = BM25) -> weft.Flow:
    return weft.loads(FLOW.format(tool=tool), str(folder / "f.yaml"))


async def filled(path: Path, *texts: str, search: Any = "bm25") -> list[int]:
    async with closing(search), weft.Memory(path, search) as memory:
        return [await memory.add(text) for text in texts]


@asynccontextmanager
async def closing(search: Any) -> AsyncIterator[None]:
    """Close the client of a search, whose connections belong to this event loop."""
    try:
        yield
    finally:
        if search != "bm25":
            await search.aclose()


def found(path: Path, query: str, k: int = 5, search: Any = "bm25", **rest: Any) -> list[str]:
    async def ask() -> list[str]:
        async with closing(search), weft.Memory(path, search) as memory:
            return [hit.text for hit in await memory.search(query, k, **rest)]

    return asyncio.run(ask())


# -- texts ------------------------------------------------------------------------------------


def test_texts_are_added_found_and_forgotten(tmp_path: Path) -> None:
    async def main() -> None:
        async with weft.Memory(tmp_path / "m.sqlite") as memory:
            one = await memory.add("The Danube is 2850 km long.", tags=["rivers", "rivers"])
            two = await memory.add("Café au lait")
            hit, *others = await memory.search("how long is the DANUBE?")
            assert (hit.id, hit.tags, others) == (one, ["rivers"], [])
            assert hit.score > 0
            assert [hit.id for hit in await memory.search("cafe")] == [two]
            assert [hit.id for hit in await memory.search("cafe\u0301")] == [two]
            assert await memory.search("long", tags=["lakes"]) == []
            assert len(await memory.search("long", tags=["rivers"])) == 1
            assert await memory.forget(one)
            assert not await memory.forget(one)
            assert await memory.search("danube") == []
            assert await memory.count() == 1
            assert await memory.add("new") > two  # ids are not reused

    asyncio.run(main())
    assert (tmp_path / "m.sqlite").stat().st_mode & 0o777 == 0o600


def test_a_key_is_added_once_even_after_it_was_forgotten(tmp_path: Path) -> None:
    async def main() -> None:
        async with weft.Memory(tmp_path / "m.sqlite") as memory:
            one = await memory.add("tea", key="k")
            assert await memory.add("tea", key="k") == one
            await memory.forget(one)
            assert await memory.add("tea", key="k") == one
            assert await memory.count() == 0

    asyncio.run(main())


@pytest.mark.parametrize(
    ("method", "arguments", "message"),
    [
        ("add", (" ",), "the text is ' '"),
        ("add", ("ä" * 40_000,), "80,000 bytes, more than 65,536"),
        ("add", ("\ud800",), "not valid Unicode"),
        ("add", ("a", ["x"] * 33), "at most 32"),
        ("add", ("a", ["x" * 129]), "more than 128"),
        ("add", ("a", "tag"), "a list"),
        ("search", ("a" * 9000,), "9,000 bytes"),
        ("search", ("a", 101), "k is 101"),
        ("search", ("a", 0), "k is 0"),
        ("forget", (-1,), "no id"),
    ],
)
def test_bounds(tmp_path: Path, method: str, arguments: tuple[Any, ...], message: str) -> None:
    memory = weft.Memory(tmp_path / "m.sqlite")
    with pytest.raises(ToolArgumentError, match=message):
        asyncio.run(getattr(memory, method)(*arguments))


def test_wrong_files_and_settings_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no database at all" * 100)
    with pytest.raises(StoreError, match="damaged or no memory"):
        asyncio.run(weft.Memory(tmp_path / "text").count())
    with pytest.raises(StoreError, match="directory"):
        asyncio.run(weft.Memory(tmp_path).count())
    with pytest.raises(BuildError, match="'bm26'"):
        weft.Memory(tmp_path / "m", "bm26")  # type: ignore[arg-type]
    with pytest.raises(BuildError, match="cannot name"):
        weft.Memory(tmp_path / "m", name="my facts")
    with pytest.raises(BuildError, match="no keyword `serch`"):
        weft.Memory(tmp_path / "m", serch="bm25")  # type: ignore[call-arg]


def test_without_a_path_it_lies_beside_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEFT_HOME", str(tmp_path))
    assert weft.Memory(name="facts").path == tmp_path / "memory" / "facts.sqlite"
    assert flow(tmp_path, "{memory: true}").run_sync().ok
    assert found(tmp_path / "memory" / "facts.sqlite", "tea") == ["Ada likes tea"]


# -- ranking ----------------------------------------------------------------------------------

WORDS = ("tea", "river", "stone", "blue", "é", "x1")


def by_hand(texts: list[str], query: str, k: int) -> list[str]:
    """BM25 as SQLite's manual defines it, text by text."""

    def words(text: str) -> list[str]:
        return re.findall(r"[^\W_]+", text.lower().replace("é", "e"))

    many = [words(text) for text in texts]
    mean = sum(map(len, many)) / len(many)
    scores: list[tuple[float, int]] = []
    for number, text in enumerate(many):
        score = 0.0
        for word in set(words(query)) & set(text):
            having = sum(word in other for other in many)
            rarity = math.log((len(many) - having + 0.5) / (having + 0.5))
            often = text.count(word)
            part = often * 2.2 / (often + 1.2 * (0.25 + 0.75 * len(text) / mean))
            score += max(rarity, 1e-6) * part
        if score:
            scores.append((-round(score, 9), number))
    return [texts[number] for _, number in sorted(scores)[:k]]


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=8), min_size=1, max_size=12),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=4),
    st.integers(1, 12),
)
def test_the_order_is_that_of_bm25(
    tmp_path_factory: pytest.TempPathFactory, many: list[list[str]], query: list[str], k: int
) -> None:
    path = tmp_path_factory.mktemp("bm25") / "m.sqlite"
    texts = [" ".join(words) for words in many]
    asyncio.run(filled(path, *texts))
    scored = by_hand(texts, " ".join(query), k)
    assert found(path, " ".join(query), k) == scored


@settings(max_examples=100, deadline=None)
@given(query=st.text(min_size=1, max_size=60) | st.from_regex(r'[a-z"*():^{}+\- ANDORTNE]{1,40}'))
def test_hostile_queries_are_words(hostile: weft.Memory, query: str) -> None:
    try:
        hits = asyncio.run(hostile.search(query))
    except ToolArgumentError:
        assert not query.strip() or not query.isprintable()
        return
    assert len(hits) <= 5


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> weft.Memory:
    path = tmp_path_factory.mktemp("hostile") / "m.sqlite"
    asyncio.run(filled(path, 'quotes " and AND OR NOT NEAR', "text: column", "a* ^b"))
    return weft.Memory(path)


def test_syntax_of_the_index_is_text(hostile: weft.Memory) -> None:
    for query in ('"', "text : x", "NEAR(a b)", "a AND", "*", "x\0y", "-", "OR", "('"):
        asyncio.run(hostile.search(query))
    many = " ".join(f"w{n}" for n in range(1500))
    assert asyncio.run(hostile.search(f"{many} column"))[0].text == "text: column"


# -- embeddings -------------------------------------------------------------------------------

AXES = ("tea", "river", "stone")


def embedding(text: str) -> list[float]:
    return [float(text.count(word)) for word in AXES]


def answer(request: Json) -> Script:
    rows = [{"index": n, "embedding": embedding(text)} for n, text in enumerate(request["input"])]
    return Script(plain=json.dumps({"data": rows[::-1], "usage": {"prompt_tokens": 1}}))


@pytest.fixture(scope="module")
def server() -> Iterator[EndpointServer]:
    with EndpointServer() as server:
        yield server


@pytest.fixture
def endpoint(server: EndpointServer) -> Endpoint:
    return server.add(answer)


@pytest.mark.parametrize("numpy", [True, False])
def test_embeddings_find_the_nearest(
    tmp_path: Path, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, *, numpy: bool
) -> None:
    if not numpy:
        monkeypatch.setitem(sys.modules, "numpy", None)
    texts = ["tea tea river", "stone", "river river", "river", "tea"]
    client = OpenAIEmbeddings(endpoint.base_url, "e", api_key="secret-key")

    async def main() -> None:
        async with weft.Memory(tmp_path / "m.sqlite", client) as memory:
            for text in texts:
                await memory.add(text, tags=["all", text.split()[0]])
            hits = await memory.search("river", k=4)
            assert [hit.text for hit in hits] == ["river river", "river", "tea tea river", "stone"]
            assert [hit.score for hit in hits] == [1.0, 1.0, 0.447214, 0.0]
            hits = await memory.search("river", k=4, tags=["all", "tea"])
            assert [hit.text for hit in hits] == ["tea tea river", "tea"]
        await client.aclose()

    asyncio.run(main())
    assert endpoint.requests[0] == {"model": "e", "input": [texts[0]], "encoding_format": "float"}
    assert {head["authorization"] for head in endpoint.headers} == {"Bearer secret-key"}
    assert b"secret-key" not in (tmp_path / "m.sqlite").read_bytes()


def test_texts_without_vectors_get_them_in_the_first_search(
    tmp_path: Path, endpoint: Endpoint
) -> None:
    path = tmp_path / "m.sqlite"
    asyncio.run(filled(path, *(f"stone {n}" for n in range(70)), "tea"))
    client = OpenAIEmbeddings(endpoint.base_url, "e")
    assert found(path, "tea", 1, client) == ["tea"]
    asked = len(endpoint.requests)
    assert found(path, "river tea", 1, client) == ["tea"]  # also in another event loop
    assert len(endpoint.requests) == asked + 1
    assert max(len(request["input"]) for request in endpoint.requests) == 16


def test_another_model_or_dimension_is_an_error(tmp_path: Path, server: EndpointServer) -> None:
    path, first = tmp_path / "m.sqlite", server.add(answer)
    asyncio.run(filled(path, "tea", search=OpenAIEmbeddings(first.base_url, "e")))
    other = OpenAIEmbeddings(first.base_url, "other")
    with pytest.raises(StoreError, match="embeddings of e, not of other") as raised:
        asyncio.run(filled(path, "river", search=other))
    assert "a file of its own" in (raised.value.hint or "")
    assert len(first.requests) == 1  # nothing is sent, so nothing is paid for
    short = server.add(Script(plain=json.dumps({"data": [{"index": 0, "embedding": [1.0]}]})))
    with pytest.raises(StoreError, match="of 3 numbers, not of 1"):
        found(path, "tea", 1, OpenAIEmbeddings(short.base_url, "e"))


@pytest.mark.parametrize(
    ("script", "error"),
    [
        (Script(plain='{"data": []}'), ModelOutputError),
        (Script(plain="[]"), ModelOutputError),
        (Script(plain='{"data": [{"index": 0, "embedding": []}]}'), ModelOutputError),
        (Script(plain='{"data": [{"index": 0, "embedding": [NaN]}]}'), ModelOutputError),
        (Script(plain='{"data": [{"index": 0, "embedding": ["1"]}]}'), ModelOutputError),
        (Script(plain='{"data": [{"index": 1, "embedding": [1.0]}]}'), ModelOutputError),
        (Script(status=404, plain="{}"), ModelNotFound),
    ],
)
def test_wrong_answers_add_nothing(
    tmp_path: Path, server: EndpointServer, script: Script, error: type[Exception]
) -> None:
    path, client = tmp_path / "m", OpenAIEmbeddings(server.add(script).base_url, "e")
    with pytest.raises(error):
        asyncio.run(filled(path, "tea", search=client))
    assert found(path, "tea") == []


# -- as tools ---------------------------------------------------------------------------------


@pytest.mark.parametrize("tool", [BM25, "{memory: ./facts.sqlite}"])
def test_a_memory_outlives_runs(tmp_path: Path, tool: str) -> None:
    made = flow(tmp_path, tool)
    made.check()
    assert not (tmp_path / "facts.sqlite").exists()  # checking opens nothing
    first, second = made.run_sync(), made.run_sync(text="Bob likes tea, too")
    assert (first["id"], second["id"]) == (1, 2)
    assert [hit["text"] for hit in second["found"]] == ["Ada likes tea", "Bob likes tea, too"]
    assert second["found"][0]["tags"] == ["people"]
    assert weft.loads(made.to_yaml()).document == made.document


def test_a_file_may_search_by_embedding(
    tmp_path: Path, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EMBED_KEY", "secret-key")
    search = f"{{model: e, base_url: '{endpoint.base_url}', api_key_env: EMBED_KEY}}"
    made = flow(tmp_path, f"{{memory: ./facts.sqlite, search: {search}}}")
    result = made.run_sync()
    assert result.ok, result.reasons
    assert result["found"][0]["score"] == 1.0
    assert endpoint.headers[0]["authorization"] == "Bearer secret-key"
    assert weft.loads(made.to_yaml()).document == made.document


def test_models_use_it(tmp_path: Path) -> None:
    memory = weft.Memory(tmp_path / "m.sqlite")
    made = weft.Flow("f", models={"small": "local:m"}, tools={"facts": memory})
    made.output(x=made.model("small", "hi", tools=["facts"]))
    call = ToolCall("1", "facts_add", '{"text": "tea"}')
    model = FakeModel([Reply(tool_calls=(call,))])
    assert made.run_sync(models={"small": model}).ok
    tools = {tool.name: tool for tool in model.requests[0].tools}
    assert list(tools) == ["facts_add", "facts_search", "facts_forget"]
    assert [tool.effect for tool in tools.values()] == ["idempotent", "pure", "idempotent"]
    assert "idempotency_key" not in tools["facts_add"].parameters["properties"]
    assert not tools["facts_search"].pure  # a search after an addition is made again
    with pytest.raises(BuildError, match="`facts` exists only in Python"):
        made.to_yaml()


def test_an_agent_remembers(tmp_path: Path) -> None:
    memory = weft.Memory(tmp_path / "m.sqlite", name="facts")
    add = call_tool("facts_add", text="Ada likes tea", tags=["people"])
    model = ScriptedAgent([add, call_tool("facts_search", query="tea"), "noted"])
    answer = weft.ask_sync("Remember me", tools=[memory], model=model, agent="react")
    assert answer.value == "noted"
    assert found(tmp_path / "m.sqlite", "tea") == ["Ada likes tea"]


def test_only_some_tools_are_taken(tmp_path: Path) -> None:
    tool = "{memory: ./facts.sqlite, only: [search]}"
    with pytest.raises(SourceError, match="`add` is not among the tools"):
        flow(tmp_path, tool)


@pytest.mark.parametrize(
    ("tool", "message", "hint"),
    [
        ("{memory: ./facts.sqlite, search: bm26}", "no search by 'bm26'", "bm25"),
        ("{memory: ./facts.sqlite, search: {model: e}}", "base_url", ""),
        ("{memory: ./f, search: {model: e, base_url: 'x', k: 1}}", "unknown key `k`", ""),
        ("{memory: ./f, search: {model: e, base_url: 'x'}}", "http://host", ""),
        ("{memory: ../facts.sqlite}", "leads out", "beside the workflow"),
        ("{memory: ./f, only: [serch, add, search]}", "no tool 'serch'", "search"),
        ("{memory: ./f, effect: once}", "`effect` does not go with a memory", ""),
        ("{memory: ./f, isolate: true}", "`isolate` does not go with a memory", ""),
        ("{use: './t.py:t', search: bm25}", "`search` does not go with a single tool", ""),
        ("{memory: ./f, mcp: {command: [a]}}", "both `mcp` and `memory`", ""),
        ("{search: bm25}", "no `use`, `mcp`, `openapi` or `memory`", ""),
        ("{memory: ./f, serach: bm25}", "unknown key `serach`", "search"),
        ("{memory: false}", "must be a file, or true", "facts.sqlite"),
    ],
)
def test_wrong_declarations_are_refused(tmp_path: Path, tool: str, message: str, hint: str) -> None:
    with pytest.raises(SourceError, match=re.escape(message)) as raised:
        flow(tmp_path, tool).check()
    assert raised.value.line == 6
    assert hint in (raised.value.hint or "")


# -- processes --------------------------------------------------------------------------------

DIES = """
import os, sys
import weft

class Dying(weft.Memory):
    async def add(self, text, tags=(), *, key=None):
        await super().add(text, tags, key=key)
        os._exit(9)  # after it is in the file, before the run knows

def flow(memory):
    made = weft.Flow("f", tools={"facts": memory})
    made.output(id=made.tool("facts.add", text="tea", name="added"))
    return made

if __name__ == "__main__":
    memory, journal = sys.argv[1:]
    flow(Dying(memory)).run_sync(journal=journal, run="r", durability="sync")
"""


def test_a_killed_run_adds_once(tmp_path: Path) -> None:
    (tmp_path / "dies.py").write_text(DIES)
    memory, journal = tmp_path / "m.sqlite", tmp_path / "j.sqlite"
    program = [sys.executable, str(tmp_path / "dies.py"), str(memory), str(journal)]
    ended = subprocess.run(program, check=False, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 9, ended.stderr
    assert found(memory, "tea") == ["tea"]
    scope: dict[str, Any] = {"__name__": "dies"}
    exec(compile(DIES, "dies.py", "exec"), scope)
    made: weft.Flow = scope["flow"](weft.Memory(memory))
    result = asyncio.run(resumed(made, weft.open_journal(journal)))
    assert result.ok, result.reasons
    assert result["id"] == 1
    assert found(memory, "tea") == ["tea"]


async def resumed(made: weft.Flow, journal: Any) -> weft.FlowResult:
    try:
        return await made.resume("r", journal=journal).wait()
    finally:
        journal.close()


ADDS = """
import asyncio, sys
import weft

async def main():
    async with weft.Memory(sys.argv[1]) as memory:
        for number in range(6):
            await memory.add(f"tea {sys.argv[2]} {number}")
            await memory.add("shared", key=f"shared {number}")

asyncio.run(main())
"""


def test_two_processes_share_a_memory(tmp_path: Path) -> None:
    program = [sys.executable, "-c", ADDS, str(tmp_path / "m.sqlite")]
    both = [subprocess.Popen([*program, name]) for name in ("a", "b")]
    assert [one.wait(timeout=60) for one in both] == [0, 0]
    assert len(found(tmp_path / "m.sqlite", "tea", 100)) == 12
    assert len(found(tmp_path / "m.sqlite", "shared", 100)) == 6
