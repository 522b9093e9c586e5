"""Values replaced in a YAML text: the data is what it should be, other lines stay."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.core.errors import BuildError
from weft.workflow.document.source import read_text
from weft.workflow.document.source.tree import plain
from weft.workflow.document.splice import REMOVED, changed, spliced
from weft.workflow.document.writer import yaml_text

TEXT_VALUES = st.text(st.characters(exclude_categories=("Cs", "Cc")) | st.just("\n"), max_size=12)
LEAVES = st.none() | st.booleans() | st.integers(-99, 99) | TEXT_VALUES
KEYS = st.text("abcdefg_ :#-'\"{}[]?&*!", min_size=1, max_size=5) | st.sampled_from(
    ["true", "null", "1"]
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=10,
)
MAPPINGS = st.dictionaries(KEYS, VALUES, min_size=1, max_size=4)


def mappings(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all mappings inside a value."""
    if isinstance(value, dict):
        inner = [place for key, item in value.items() for place in mappings(item, (*path, key))]
        return [path, *inner]
    if isinstance(value, list):
        return [place for n, item in enumerate(value) for place in mappings(item, (*path, n))]
    return []


@settings(max_examples=150, deadline=None)
@given(MAPPINGS, st.data())
def test_the_data_changes_as_asked(raw: dict[str, Any], data: st.DataObject) -> None:
    text = yaml_text(raw)
    path = data.draw(st.sampled_from(mappings(raw)))
    owner: Any = raw
    for key in path:
        owner = owner[key]
    key = data.draw((st.sampled_from(sorted(owner)) | KEYS) if owner else KEYS)
    value = data.draw(VALUES)
    new = spliced(text, {(*path, key): value})
    assert plain(read_text(new, "t")[1]) == changed(raw, {(*path, key): value})
    if len(owner) > 1 and key in owner:
        left = spliced(text, {(*path, key): REMOVED})
        assert plain(read_text(left, "t")[1]) == changed(raw, {(*path, key): REMOVED})


TEXT = """\
a: 1   # one
b:
  # before
  c: |
    text
      # more

  d: {e: [1,  2], f: 'x'}  # after

# the end
g: "y"
"""


@pytest.mark.parametrize(
    ("changes", "old", "new"),
    [
        ({("a",): 2}, "a: 1 ", "a: 2 "),
        ({("a",): "l\nm"}, "a: 1 ", 'a: "l\\nm" '),
        ({("b", "c"): "t\nu"}, "c: |\n    text\n      # more\n", "c: |-\n    t\n    u\n"),
        ({("b", "d", "f"): 3}, "f: 'x'", "f: 3"),
        ({("b", "d", "h"): {"i j": None}}, "'x'}", "'x', h: {\"i j\": null}}"),
        ({("b", "d", "e"): REMOVED}, "e: [1,  2], ", ""),
        ({("b", "d", "f"): REMOVED}, ", f: 'x'", ""),
        ({("b", "d"): REMOVED}, "\n\n  d: {e: [1,  2], f: 'x'}  # after\n", "\n"),
        ({("g",): REMOVED}, '\ng: "y"', ""),
        ({("h",): [1]}, 'g: "y"', 'g: "y"\nh: [1]'),
        ({("a",): REMOVED}, "a: 1   # one\n", ""),
    ],
)
def test_only_the_value_changes_in_the_text(
    changes: dict[tuple[str | int, ...], Any], old: str, new: str
) -> None:
    found = spliced(TEXT, changes)
    if changes == {("g",): REMOVED}:
        assert "g:" not in found
    else:
        assert found == TEXT.replace(old, new)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("a: &x {b: 1}\nc: *x\n", ("c", "b")),
        ("a: &x 1\nb: *x\n", ("a",)),
        ("a: {b: 1}\n", ("a", "c", "d")),
        ("a: [1]\n", ("a", 0)),
    ],
)
def test_what_cannot_be_replaced_is_refused(text: str, path: tuple[Any, ...]) -> None:
    with pytest.raises(BuildError):
        spliced(text, {path: 2})


def test_the_only_key_of_a_mapping_stays() -> None:
    with pytest.raises(BuildError, match="needs a key"):
        spliced("a: {b: 1}\n", {("a", "b"): REMOVED})
