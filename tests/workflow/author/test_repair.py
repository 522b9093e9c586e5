"""Repairs change the own fields of the parts that defects name, and no other byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evals.write.spans import without_parts
from tests.workflow.author.script import TOOLS
from weft.workflow.author.draft import DraftDefect, find_defects, raw_document, with_comments
from weft.workflow.author.fields import OUTPUTS, at, node_paths, own_fields, visible_names
from weft.workflow.author.repair import repair_prompt, repair_tasks, repaired_text

TEXT = """\
# A workflow that somebody wrote.
name: by_hand   # with comments
inputs: {topic: string}
tools:
  search:   "./tools.py:search"
  shorten: ./tools.py:shorten
models: {small: "local:smollm2-135m-instruct"}

nodes:
  hits: {tool: search, with: {query: "{{ topic }}"}}  # all of them
  notes:
    map: "{{ hits }}"
    as: hit
    # each on its own
    do:
      nodes:
        draft:
          model: small
          prompt: |
            # Summarise
            {{ hit }}
        short: {tool: shorten, with: {text: '{{ draft }}'}, retry: 2}
      result: "{{ short }}"
  kept:
    branch: "{{ notes | length > 2 }}"
    cases:
      true: {value: "many"}
      false:
        nodes:
          few: {value: [few, "{{ topic }}"]}
        result: "{{ few }}"   # no more
  end:
    loop: {value: "{{ text }}!"}
    as: text
    start: "{{ topic }}"
    until: "{{ text | length > 9 }}"
    max: 3

outputs:
  kept: "{{ kept }}"
  end: "{{ end }}"
"""
RAW = raw_document(TEXT)
PARTS = {address: path for path, address in node_paths(RAW)}
LEAVES = (
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=12) | st.just("{{ topic }}")
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
KEYS = ("with", "prompt", "map", "branch", "until", "value", "when", "after", "result", "max",
        "tool", "use", "call", "results", "remove", "system", "start", "schema")  # fmt: skip
ANSWERS = VALUES | st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=3)


def test_the_parts_are_known() -> None:
    assert set(PARTS) == {
        *("hits", "notes", "notes/draft", "notes/short", "kept", "kept/true"),
        *("kept/false/few", "end", "end/loop"),
    }


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from([*PARTS, OUTPUTS]), ANSWERS, min_size=1, max_size=4))
def test_only_the_named_parts_change(answers: dict[str, Any]) -> None:
    paths = {**PARTS, OUTPUTS: (OUTPUTS,)}
    defects = [DraftDefect(part, paths[part], "wrong", key="kept") for part in answers]
    tasks = repair_tasks(TEXT, defects)
    given_answers = [answers[task.part] for task in tasks]
    text, repaired = repaired_text(TEXT, tasks, given_answers, ["search", "shorten"])
    raw = raw_document(text)
    assert set(repaired) <= set(answers)
    assert {address for _, address in node_paths(raw)} == set(PARTS)
    for part, path in PARTS.items():
        if part not in repaired:
            assert own_fields(at(raw, path)) == own_fields(at(RAW, path))
    for key in ("name", "inputs", "tools", "models"):
        assert raw[key] == RAW[key]
    assert_other_lines_stay(text, repaired)


def assert_other_lines_stay(text: str, repaired: list[str]) -> None:
    assert without_parts(text, repaired) == without_parts(TEXT, repaired)


def test_nothing_but_the_value_changes_in_the_text() -> None:
    (task,) = repair_tasks(TEXT, [DraftDefect("hits", PARTS["hits"], "wrong")])
    text, _ = repaired_text(TEXT, [task], [{"with": {"query": "tea", "limit": 2}}], ["search"])
    assert text == TEXT.replace('with: {query: "{{ topic }}"}', 'with: {query: "tea", limit: 2}')


@pytest.mark.parametrize(
    "answer",
    [
        {"call": "os:system"},
        {"tool": "rm"},
        {"use": "./evil.py:f"},
        {"remove": ["tool"]},
        {"remove": ["with"]},
        {"with": "text"},
        {"approve": False},
        {"result": "{{ topic }}"},
        {},
        None,
        7,
    ],
)
def test_answers_that_are_refused_change_nothing(answer: object) -> None:
    (task,) = repair_tasks(TEXT, [DraftDefect("hits", PARTS["hits"], "wrong", key="with")])
    assert repaired_text(TEXT, [task], [answer], ["search"]) == (TEXT, [])


def test_a_key_that_a_defect_names_can_go() -> None:
    text = TEXT.replace("retry: 2", "retyr: 2")
    defect = DraftDefect("notes/short", PARTS["notes/short"], "unknown key", key="retyr")
    tasks = repair_tasks(text, [defect])
    new, repaired = repaired_text(text, tasks, [{"remove": ["retyr"]}], ["shorten"])
    assert repaired == ["notes/short"]
    assert new == TEXT.replace(", retry: 2", "")


def test_the_prompt_says_what_is_wrong_and_what_can_be_used() -> None:
    defect = DraftDefect("notes/draft", PARTS["notes/draft"], "no `hti`", "did you mean `hit`?")
    (task,) = repair_tasks(TEXT, [defect])
    visible = visible_names(RAW, task.path)
    assert visible == ["topic", "hits", "kept", "end", "hit", "index", "short"]
    prompt = repair_prompt(task, "notes", TEXT, visible, {})
    assert "no `hti`; did you mean `hit`?" in prompt
    assert json.dumps(dict(task.fields)) in prompt


def test_defects_are_found_with_their_parts(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(TOOLS)
    file = tmp_path / "flow.yaml"
    assert find_defects(TEXT, file) == []
    text = TEXT.replace("{{ hit }}", "{{ hti }}").replace('end: "{{ end }}"', 'end: "{{ ende }}"')
    found = find_defects(text.replace("retry", "retyr"), file, [("topic", "kept/false/few")])
    assert [(each.part, each.key) for each in found] == [
        ("notes/draft", "prompt"), ("notes/short", "retyr"), ("outputs", "end"),
    ]  # fmt: skip
    lost = find_defects(
        TEXT.replace('[few, "{{ topic }}"]', "few"), file, [("topic", "kept/false/few")]
    )
    assert [str(each) for each in lost] == [
        "`kept/false/few`: it does not use `topic` (use it: {{ topic }})"
    ]


def test_comments_stand_above_the_faulty_parts() -> None:
    defects = [
        DraftDefect("notes/draft", PARTS["notes/draft"], "is\nwrong", "repair it"),
        DraftDefect("", (), "a model is unknown"),
    ]
    text = with_comments(TEXT, defects)
    assert raw_document(text) == RAW
    lines = text.splitlines()
    assert lines[0] == "# weft write: a model is unknown"
    at_draft = lines.index("        draft:")
    assert lines[at_draft - 1] == "        # weft write: `notes/draft`: is wrong (repair it)"
