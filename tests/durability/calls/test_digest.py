"""Texts that digests are made of: written in one pass, they are the bytes that records know."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from weft.durability.calls.digest import canonical, canonical_text
from weft.engine.graph.content_digest import content, content_text

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary()
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.text() | st.integers(), inner)
        | st.tuples(inner, inner)
        | st.frozensets(st.text())
    ),
    max_leaves=20,
)


@given(VALUES)
def test_what_is_written_at_once_is_what_json_makes_of_the_copy(value: Any) -> None:
    assert content_text(value) == json.dumps(content(value))
    copied = json.dumps(canonical(value), sort_keys=True, ensure_ascii=False)
    assert canonical_text(value) == copied
