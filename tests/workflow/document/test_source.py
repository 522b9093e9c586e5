"""YAML to values with places."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.core.errors import SourceError
from weft.workflow.document.source import SourcePosition, read_text
from weft.workflow.document.source.tree import place_of, plain

TEXT = """\
name: brief
nodes:
  a:
    prompt: |
      one {{ x }}
      two
        three {{ y }}
  b: [1, {c: "d"}]
"""


def value(text: str) -> object:
    return plain(read_text(text, "t.yaml")[1])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("2026-01-31", "2026-01-31"),
        ("12:30", "12:30"),
        ("1_000", "1_000"),
        ("true", True),
        ("False", False),
        ("~", None),
        ("null", None),
        ("0x1F", 31),
        ("0o17", 15),
        ("017", 17),
        ("-3", -3),
        ("+3", 3),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("1.", 1.0),
        ("'1'", "1"),
        ('"true"', "true"),
        ("!", None),
        ("|\n  1\n", "1\n"),
    ],
)
def test_scalars_follow_yaml_1_2(text: str, expected: object) -> None:
    if text == "!":
        with pytest.raises(SourceError, match="tag"):
            value(f"x: {text} 1")
        return
    found = value(f"x: {text}")
    assert found == {"x": expected}
    assert type(found["x"]) is type(expected)  # type: ignore[index]


KEYS = st.text(max_size=80)
"""A plain key of YAML ends within 1,024 characters, escapes included."""


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.floats(-1e9, 1e9) | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
        max_leaves=8,
    )
)
def test_what_json_writes_yaml_reads(tree: object) -> None:
    assert value(json.dumps(tree)) == tree


def test_every_key_and_value_has_its_place() -> None:
    _, tree = read_text(TEXT, "t.yaml")
    assert place_of(tree, ("nodes", "a", "prompt"), key=True) == SourcePosition(4, 5)
    assert place_of(tree, ("nodes", "a", "prompt")) == SourcePosition(4, 13, block=True)
    assert place_of(tree, ("nodes", "b", 1, "c")) == SourcePosition(8, 14)
    assert place_of(tree, ("nodes", "b", 7)) == SourcePosition(8, 6)


def test_places_inside_blocks() -> None:
    source, tree = read_text(TEXT, "t.yaml")
    prompt = place_of(tree, ("nodes", "a", "prompt"))
    assert source.within(prompt, 1, "x") == SourcePosition(5, 14)
    assert source.within(prompt, 3, "y") == SourcePosition(7, 18)
    assert source.within(prompt, 3, "nowhere") == SourcePosition(7, 9)
    assert source.within(place_of(tree, ("name",)), 1, "brief") == SourcePosition(1, 7)


def test_an_alias_repeats_a_value_with_its_own_places() -> None:
    _, tree = read_text("a: &x {b: 1}\nc: *x\n", "t.yaml")
    assert plain(tree) == {"a": {"b": 1}, "c": {"b": 1}}
    assert place_of(tree, ("c", "b")) == SourcePosition(1, 11)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "{a: " * 100_000,
        "- " * 100_000,
        "? " * 5_000,
        "a: &a [*a]",
        "&a a: 1",
        "*a : 1",
        "? [1]\n: 2",
        "x: 1" + "0" * 400,
        "x: 1e999",
        "x: .inf",
        'x: "\\UFFFFFFFF"',
        'x: "\\q"',
        "%TAG ! tag:x,2000:\n---\n!a b",
        "x: !!binary aGk=",
        "a: b: c",
        "@x",
        "`x`",
    ],
)
def test_hostile_yaml_is_one_source_error(text: str) -> None:
    with pytest.raises(SourceError):
        read_text(text, "t.yaml")


def test_many_values() -> None:
    with pytest.raises(SourceError, match="100,000"):
        read_text("\n".join(f"k{i}: 1" for i in range(100_001)), "t.yaml")
