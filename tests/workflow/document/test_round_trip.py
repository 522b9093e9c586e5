"""YAML to document to YAML: nothing is lost, and writing twice writes the same."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from jsonschema import Draft202012Validator

import weft
from tests.golden_files import assert_golden
from tests.profile import examples
from tests.workflow.documents import documents
from tests.workflow.test_broken import FOLDER
from weft.core.errors import SourceError
from weft.workflow.document.source.reader import read_file
from weft.workflow.document.source.tree import plain
from weft.workflow.document.spec.document import WorkflowDocument, walk
from weft.workflow.document.spec.nodes import KIND_NAMES

SCHEMA = Draft202012Validator(weft.json_schema())


@examples(60)
@given(documents())
def test_reading_what_was_written(document: dict[str, Any]) -> None:
    flow = weft.loads(json.dumps(document))
    text = flow.to_yaml()
    again = weft.loads(text)
    assert again.document == flow.document
    assert again.to_yaml() == text


@pytest.mark.parametrize("text", ["?0", ":0", "?", ":", "- a", "#", "a: b", "{", "&a", "*a", "!a"])
def test_texts_that_look_like_signs_of_yaml(text: str) -> None:
    node = {"value": {text: text, "deep": [text]}, "description": text}
    flow = weft.loads(json.dumps({"name": "f", "nodes": {"a": node}, "outputs": {"a": "{{ a }}"}}))
    assert weft.loads(flow.to_yaml()).document == flow.document


@examples(60)
@given(documents())
def test_the_published_schema_takes_what_the_loader_takes(document: dict[str, Any]) -> None:
    assert not list(SCHEMA.iter_errors(document))


def test_the_random_documents_use_every_kind() -> None:
    seen: set[str] = set()

    @settings(max_examples=500, derandomize=True, database=None, deadline=None)
    @given(documents())
    def collect(document: dict[str, Any]) -> None:
        parsed = WorkflowDocument.model_validate(document)
        seen.update(step.kind for _, step in walk(parsed.nodes))

    collect()
    assert seen == set(KIND_NAMES) - {"workflow"}


def test_the_published_schema_is_a_schema() -> None:
    Draft202012Validator.check_schema(weft.json_schema())


def test_every_key_is_described() -> None:
    definitions = weft.json_schema()["$defs"]
    for name, definition in {**definitions, "": weft.json_schema()}.items():
        assert name in ("JsonValue", "InputSpec", "Name") or definition.get("description"), name
        for key, value in definition.get("properties", {}).items():
            assert value.get("description") or "$ref" in value, f"{name}.{key}"


STRUCTURAL = [
    *("misspelt_key", "misspelt_key_deep", "misspelt_kind", "misspelt_section", "no_kind"),
    *("two_kinds", "missing_name", "missing_prompt", "missing_result", "bad_duration"),
    *("bad_type_name", "bad_json_schema", "number_for_text", "text_for_number", "negative_retry"),
    *("bad_mode", "bad_node_name", "reserved_name", "api_key", "not_a_mapping"),
]


@pytest.mark.parametrize("name", STRUCTURAL)
def test_the_published_schema_refuses_what_the_loader_refuses(name: str) -> None:
    _, tree = read_file(FOLDER / f"{name}.yaml")
    assert list(SCHEMA.iter_errors(plain(tree)))
    with pytest.raises(SourceError):
        weft.load(FOLDER / f"{name}.yaml")


def test_the_whole_example(pytestconfig: pytest.Config) -> None:
    folder = FOLDER.parent / "whole"
    _, tree = read_file(folder / "everything.yaml")
    assert not list(SCHEMA.iter_errors(plain(tree)))
    flow = weft.load(folder / "everything.yaml")
    flow.check()
    assert set(KIND_NAMES) == {step.kind for _, step in walk(flow.nodes)}
    golden = pytestconfig.rootpath / "tests" / "golden" / "workflow_everything.yaml"
    assert_golden(golden, flow.to_yaml())
    again = weft.loads(golden.read_text("utf-8"), str(folder / "again.yaml"))
    assert again.document == flow.document
