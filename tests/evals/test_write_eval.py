"""Importer of WorkflowBench, planted defects and scripted authors, on small documents."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evals.planning.effort import Skipped
from evals.planning.workflowbench import Sample, counted, import_sample, load_samples
from evals.planning.workflowbench.lines import statements
from evals.planning.workflowbench.values import ValueReader, literal, split
from evals.write.authored import GoldWorkflow, scores, write_one
from evals.write.planted import GoodDocument, changed_parts, plant, repaired
from weft.core.errors import BuildError
from weft.workflow import Models
from weft.workflow.author.edges import document_edges, skeleton_of
from weft.workflow.document.loader import load_text
from weft.workflow.runtime.compiled import check_file

CODE = """\
# Asks for a name.
Name = f'{input("Who?")}'
# Cut off text: it never ends.
page = is_workflow_actions_url( WFURLActionURL=f'''https://x/{Name}
# The list.
rows = is_workflow_actions_downloadurl( WFURL=f'''{page}''', Show-H=True, WFBody={"a": no quotes})
# Each row.
for Repeat_Index, Repeat_Item in enumerate(rows, start=1):
    # Its title.
    title = Repeat_Item['''title''']
    if title:
        # More than one line.
        entry = f'''{Repeat_Index}. {title}
# Second line.
{{not a name}}'''
        is_workflow_actions_showresult( Text=f'''{entry}''')
    # Nothing.
    else:
        pass
total = is_workflow_actions_count( Input=title)
for Repeat_Index in range(int(3.0)):
    Sum = f'''{total}{Repeat_Index}'''
match input(prompt='''Which?'''):
    # One.
    case "One":
        last = is_workflow_actions_count( Input=Sum)
    case "Two {%":
        last = total
if str(last) == '''3''':
    is_workflow_actions_showresult( Text=f'''{last}''')
"""
SAMPLE = Sample(7, "Count rows.", "1. **Ask**\n2. **Count**", CODE, ())


@pytest.fixture
def good(tmp_path: Path) -> GoodDocument:
    made = import_sample(SAMPLE)
    file = made.write(tmp_path)
    edges = document_edges(load_text(made.text, str(file)).document)
    return GoodDocument("made up", made.text, file, tuple(sorted(edges)))


def test_a_sample_becomes_a_document_that_is_accepted(good: GoodDocument) -> None:
    check_file(good.file)
    made = import_sample(SAMPLE)
    assert made.kept == counted(CODE)
    assert (made.kept.calls, made.kept.branches, made.kept.loops) == (6, 3, 2)
    nodes = made.raw["nodes"]
    assert nodes["asked"] == {"ask": "Who?"}
    assert nodes["rows"]["with"]["Show_H"] is True
    assert nodes["rows"]["with"]["WFBody"] == {"a": "no quotes"}
    assert ("page", "rows") in good.edges
    assert "WFURLActionURL: str" in made.tools


def test_values_are_read_tolerantly() -> None:
    reader = ValueReader({"x": "node", "y z": "no"}, lambda _: "asked")
    assert reader.value("x['''a'''].b") == '{{ node["a"]["b"] }}'
    assert reader.value("f'''{x}{unknown}{{'''") == "{{ node }}{unknown}{{ '{' }}{{ '{' }}"
    assert reader.value("[1, 'a,b', x]") == [1, "a,b", "{{ node }}"]
    assert reader.condition("str(x) == '''1''' and not x") != ""
    assert split("a, f(b, c), '''d, e'''") == ["a", " f(b, c)", " '''d, e'''"]


@given(st.text("{%}#' a", max_size=12))
def test_literals_stay_as_they_are(text: str) -> None:
    from weft.workflow.document.expressions import template

    assert template(literal(text)).render({}) == text


@settings(max_examples=150, deadline=None)
@given(st.text("abif for in:=(){}'\"\n #,.%", max_size=120))
def test_no_text_breaks_the_importer(code: str) -> None:
    statements(code)
    import_sample(Sample(0, "q", "", code, ()))


def test_planted_defects_are_found_and_repaired_alone(good: GoodDocument) -> None:
    planted = list(plant(good, 2))
    assert {one.kind for one in planted} >= {
        *("lost_edge", "misspelt_name", "broken_expression", "misnamed_tool"),
        *("missing_argument", "unknown_key", "wrong_output"),
    }

    async def all_of() -> None:
        async with Models() as models:
            for one in planted:
                outcome = await repaired(one, models, 0.0, 0)
                assert (outcome.found, outcome.repaired, outcome.others) == (True, True, 0), one
                assert outcome.rounds == 1

    asyncio.run(all_of())


def test_changes_of_other_parts_are_noticed(good: GoodDocument) -> None:
    assert changed_parts(good.text, good.text) == set()
    assert changed_parts(good.text, good.text.replace("https", "http")) == {"page"}
    assert changed_parts(good.text, good.text.replace("nodes:\n", "nodes: \n")) == {"lines"}


def test_an_author_that_makes_no_mistake_writes_the_gold(tmp_path: Path) -> None:
    made = import_sample(SAMPLE)
    file = made.write(tmp_path / "gold")
    skeleton = skeleton_of(load_text(made.text, str(file)).document)
    assert skeleton is not None
    gold = GoldWorkflow(SAMPLE, made.text, file.parent / "tools.py", skeleton)

    async def both() -> None:
        async with Models() as models:
            for name in ("good", "bad"):
                shutil.copytree(file.parent, tmp_path / name, ignore=lambda *_: ["flow.yaml"])
            good = await write_one(gold, tmp_path / "good", 0.0, models)
            assert (good.node_f1, good.edge_f1, good.accepted, good.rounds) == (1.0, 1.0, True, 0)
            bad = await write_one(gold, tmp_path / "bad", 1.0, models)
            assert not bad.accepted

    asyncio.run(both())


def test_scores_fall_with_lost_nodes_and_edges() -> None:
    gold = "name: a\nnodes: {x: {value: 1}, y: {value: '{{ x }}'}}\noutputs: {y: '{{ y }}'}\n"
    fewer = "name: a\nnodes: {y: {value: 2}}\noutputs: {y: '{{ y }}'}\n"
    assert scores(gold, gold) == (1.0, 1.0)
    nodes, edges = scores(gold, fewer)
    assert (round(nodes, 3), edges) == (0.667, 0.0)


def test_the_real_samples() -> None:
    try:
        samples = load_samples()
    except Skipped as reason:
        pytest.skip(str(reason))
    assert len(samples) == 50
    kept = [import_sample(sample).kept == counted(sample.code) for sample in samples]
    assert sum(kept) >= 45


def test_a_document_with_a_defect_is_not_taken_for_good(tmp_path: Path) -> None:
    file = import_sample(SAMPLE).write(tmp_path)
    file.write_text(file.read_text().replace("{{ page }}", "{{ pages }}"))
    with pytest.raises(BuildError, match="pages"):
        check_file(file)
