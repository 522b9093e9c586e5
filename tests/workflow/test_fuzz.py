"""Whatever the text, loading it gives a workflow or one `SourceError`."""

import json
from contextlib import suppress
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

import weft
from tests.profile import examples
from weft.core.errors import SourceError
from weft.workflow.document.source.reader import read_bytes

FOLDER = Path(__file__).parent
SEEDS = [
    path.read_text("utf-8")
    for path in sorted([*(FOLDER / "broken").glob("*.yaml"), *(FOLDER / "whole").glob("*.yaml")])
    if path.stem not in ("not_utf8", "utf16", "binary")
]
WORDS = [
    *("name", "inputs", "models", "tools", "run", "nodes", "outputs", "map", "do", "as", "with"),
    *("model", "prompt", "tool", "value", "join", "loop", "until", "max", "branch", "cases"),
    *("schema", "default", "fallback", "after", "when", "retry", "{{ a }}", "{{", "}}", "{% if %}"),
    *("|", ">", "&x", "*x", "!!t", "- ", ": ", "\n", "  ", "[", "]", "{", "}", "'", '"', "#", "\t"),
]


def load(text: str) -> None:
    found: weft.Flow | SourceError
    try:
        found = weft.loads(text)
    except SourceError as error:
        found = error
    if isinstance(found, SourceError):
        assert 1 <= found.line <= text.count("\n") + 2
        assert found.column >= 1
    else:
        assert weft.loads(found.to_yaml()).document == found.document


@examples(100)
@given(st.text())
def test_random_text(text: str) -> None:
    load(text)


@examples(100)
@given(st.lists(st.sampled_from(WORDS)).map("".join))
def test_random_yaml_like_text(text: str) -> None:
    load(text)


@examples(100)
@given(st.binary())
def test_random_bytes(data: bytes) -> None:
    with suppress(SourceError):
        read_bytes(data, "t.yaml")


@examples(300)
@given(st.data())
def test_mutated_documents(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(SEEDS))
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(len(text), start + 12)))
        middle = data.draw(
            st.sampled_from(WORDS) | st.text(max_size=3) | st.just(text[start:end] * 2)
        )
        text = text[:start] + middle + text[end:]
    load(text)


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(WORDS) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(WORDS[:28]), inner, max_size=4)
    ),
    max_leaves=20,
)


@examples(100)
@given(_json)
def test_random_structures(tree: object) -> None:
    load(json.dumps({"name": "x", "nodes": {"a": tree}, "outputs": {"o": "{{ a }}"}}))
