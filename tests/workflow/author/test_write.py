"""A workflow written in layers by a scripted author: the document, repairs, refusals, records."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import weft
from evals.write.spans import without_parts
from tests.golden_files import assert_golden
from tests.workflow.author.script import (
    FIELDS,
    QUERY,
    SKELETON,
    TOOLS,
    author,
    good_answer,
    layers,
    prompt_of,
)
from weft.core.errors import AgentError, BuildError, InputError, ModelRequestError, SourceError
from weft.testing import FakeModel
from weft.testing.journal import MemoryJournal
from weft.testing.script import Reply
from weft.workflow import Models
from weft.workflow.apps.tool_sources import ToolSources
from weft.workflow.apps.write import (
    WrittenWorkflow,
    write,
    write_flow,
    written_by,
)
from weft.workflow.author.draft import raw_document
from weft.workflow.author.intention import read_intention
from weft.workflow.author.program import WriteOptions
from weft.workflow.runtime.options import AskSettings

GOLDEN = Path(__file__).parents[2] / "golden" / "workflow_written.yaml"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tools.py").write_text(TOOLS)
    return tmp_path


def written(folder: Path, model: FakeModel, options: WriteOptions | None = None) -> WrittenWorkflow:
    tools = [folder / "tools.py"]
    out = folder / "flow.yaml"
    return asyncio.run(write(QUERY, out=out, tools=tools, model=model, options=options))


def test_the_document(folder: Path) -> None:
    model = author()
    made = written(folder, model)
    assert (made.remaining, made.repaired, made.rounds) == ((), (), 0)
    assert made.bullets[0] == "Find pages."
    assert_golden(GOLDEN, made.text)
    assert layers(model)[:3] == ["intention", "bullets", "skeleton"]
    assert sorted(layers(model)[3:]) == sorted(f"write {name}" for name in FIELDS)
    made.check()


def test_it_runs(folder: Path) -> None:
    written(folder, author())
    flow = weft.check(folder / "flow.yaml")
    result = flow.run_sync({"topic": "tea"}, models={"model": FakeModel(["a summary"])})
    assert result.outputs == {"notes": ["a summary"] * 3, "verdict": "Many pages on tea."}


def test_a_given_intention_is_not_asked_for(folder: Path) -> None:
    meant = read_intention(
        {"input": [{"name": "topic", "type": "string"}], "output": [
            {"name": "notes", "type": "string"}, {"name": "verdict", "type": "string"}]}
    )  # fmt: skip
    model = author()
    written(folder, model, WriteOptions(meant))
    assert "intention" not in layers(model)


@pytest.mark.parametrize(
    ("node", "wrong", "told"),
    [
        ("hits", {"with": {"query": "{{ topik }}"}}, "`topik`"),
        ("hits", {"with": {"query": "{{ topic }}", "limit": "many"}}, "`limit`"),
        ("kept", {"branch": "{{ hits | length > }}"}, "bad template"),
        ("kept", {"branch": "true"}, "it does not use `hits`"),
        ("notes/draft", {"prompt": "Summarise the page."}, "it does not use `hit`"),
        ("kept/true/many", {"value": "{{ few }}"}, "`few`"),
        ("notes/short", {"with": {}}, "`text`"),
    ],
)
def test_errors_go_back_for_the_nodes_that_they_name(
    folder: Path, node: str, wrong: dict[str, Any], told: str
) -> None:
    model = author({f"write {node.rpartition('/')[2]}": wrong})
    made = written(folder, model)
    assert made.remaining == ()
    assert [part.part for part in made.repaired] == [node]
    assert told in made.repaired[0].defect
    asked = [layer for layer in layers(model) if layer.startswith("repair")]
    assert asked == [f"repair {node}"]
    prompts = [prompt_of(request) for request in model.requests]
    assert any(told in prompt for prompt in prompts if prompt.startswith("Repair"))
    assert_golden_but(made.text, node)


def assert_golden_but(text: str, node: str) -> None:
    """Every line that is not the node's own is that of the golden document."""
    assert without_parts(text, [node]) == without_parts(GOLDEN.read_text("utf-8"), [node])


def test_a_lasting_defect_is_marked_in_the_file_and_told(folder: Path) -> None:
    wrong = {"with": {"query": "{{ topik }}"}}
    model = author({"write hits": wrong, "repair hits": wrong})
    made = written(folder, model)
    assert made.rounds == 3
    assert layers(model).count("repair hits") == 3
    (defect,) = made.remaining
    assert "`hits`" in defect
    assert "topik" in defect
    lines = made.text.splitlines()
    marked = next(n for n, line in enumerate(lines) if "# weft write:" in line)
    assert lines[marked + 1].lstrip().startswith("hits:")
    with pytest.raises(SourceError, match="still has defects after 3 rounds") as caught:
        made.check()
    assert caught.value.line == marked + 1
    with pytest.raises(BuildError, match="topik"):
        weft.check(made.file)


@pytest.mark.parametrize(
    "hostile",
    [
        "no JSON at all",
        "[]",
        {"with": {"query": {"a": "b"}, "evil": 1}},
        {"with": {"query": "{{ topic }}"}, "use": "os:system"},
        {"tool": "search", "call": "os:system"},
        {"with": {"query": "{{ topic.__class__.__mro__ }}"}},
        {"with": {"query": "\u0000\ud800"}},
        {"with": {"query": "{% for a in range(9) %}{{ a }}{% endfor %}"}},
    ],
)
def test_hostile_fields_are_refused_and_repaired(folder: Path, hostile: object) -> None:
    made = written(folder, author({"write hits": hostile}))
    assert made.remaining == ()
    assert raw_document(made.text) == raw_document(GOLDEN.read_text("utf-8"))
    assert [part.part for part in made.repaired] == ["hits"]
    assert_golden_but(made.text, "hits")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"nodes": SKELETON["nodes"][:1] * 2}, "already a node"),
        ({"nodes": [{**SKELETON["nodes"][0], "tool": "rm"}]}, "does not fit"),
        ({"nodes": [{**SKELETON["nodes"][0], "id": "loop"}]}, "word of expressions"),
        ({"nodes": SKELETON["nodes"][:2]}, "nothing is inside `notes`"),
        ({"nodes": [{**SKELETON["nodes"][0], "needs": ["topics"]}]}, "did you mean `topic`"),
        ({"nodes": [{**SKELETON["nodes"][0], "inside": "other"}]}, "nothing before it"),
        ({"outputs": SKELETON["outputs"][:1]}, "no node is behind the output `verdict`"),
    ],
)
def test_a_skeleton_that_cannot_be_laid_out_is_drawn_again(
    folder: Path, change: dict[str, Any], told: str
) -> None:
    model = author({"skeleton": [{**SKELETON, **change}, SKELETON]})
    assert written(folder, model).text == GOLDEN.read_text("utf-8")
    drawn = [
        r for r, layer in zip(model.requests, layers(model), strict=True) if layer == "skeleton"
    ]
    if told != "does not fit":  # such an answer is repaired by the model node itself
        assert told in prompt_of(drawn[1])


def test_without_a_skeleton_there_is_no_file(folder: Path) -> None:
    wrong = {**SKELETON, "outputs": SKELETON["outputs"][:1]}
    with pytest.raises(AgentError, match="no skeleton that can be used"):
        written(folder, author({"skeleton": wrong}))
    assert not (folder / "flow.yaml").exists()


def test_a_cycle_in_a_skeleton_is_told(folder: Path) -> None:
    nodes = [{**SKELETON["nodes"][0], "needs": ["kept"]}, *SKELETON["nodes"][1:]]
    model = author({"skeleton": [{**SKELETON, "nodes": nodes}, SKELETON]})
    written(folder, model)
    assert "wait for each other" in prompt_of(model.requests[3])


def test_a_file_that_exists_is_kept(folder: Path) -> None:
    (folder / "flow.yaml").write_text("mine")
    model = author()
    with pytest.raises(InputError, match=r"flow\.yaml exists already"):
        written(folder, model)
    assert (folder / "flow.yaml").read_text() == "mine"
    assert not model.requests


@pytest.mark.parametrize(
    ("query", "out", "told"), [(" ", "a.yaml", "empty"), ("x", "no/a.yaml", "no folder")]
)
def test_bad_arguments(folder: Path, query: str, out: str, told: str) -> None:
    with pytest.raises(BuildError, match=told):
        asyncio.run(write(query, out=folder / out, tools=[folder / "tools.py"], model=author()))


def test_tools_outside_the_folder_of_the_file_are_refused(folder: Path) -> None:
    (folder / "below").mkdir()
    with pytest.raises(BuildError, match="outside the folder"):
        asyncio.run(
            write("x", out=folder / "below/a.yaml", tools=[folder / "tools.py"], model=author())
        )


def test_a_resumed_run_makes_no_finished_call_twice(folder: Path) -> None:
    journal = MemoryJournal()
    refused = Reply(error=ModelRequestError("not now"))
    model = author({"bullets": [refused, good_answer("bullets")]})
    question = write_flow(QUERY, ToolSources([folder / "tools.py"]), model, folder / "flow.yaml")

    async def both() -> WrittenWorkflow:
        async with Models() as models:
            first = question.start(models, AskSettings(journal=journal, run="one"))
            failed = await first.wait()
            with pytest.raises(AgentError, match="not now"):
                written_by(failed, "one")
            again = question.start(models, AskSettings(journal=journal, resume="one"))
            return written_by(await again.wait())

    assert asyncio.run(both()).text == GOLDEN.read_text("utf-8")
    assert Counter(layers(model)) == Counter(
        ["intention", "bullets", "bullets", "skeleton", *(f"write {name}" for name in FIELDS)]
    )
