"""Settings from plain data: within bounds, or refused with the reason."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.serving.vllm.drafting.settings import OPTIONS, ProposerSettings, settings_from


def test_what_is_missing_is_the_default() -> None:
    assert settings_from({}) == ProposerSettings()
    assert settings_from({"least": 0, "remember": True}) == ProposerSettings(
        least=0.0, remember=True
    )


@pytest.mark.parametrize(
    ("given_", "says"),
    [
        ([], "not a mapping"),
        ({"deep": 3}, "unknown: deep; there are depth"),
        ({"depth": "3"}, "`depth` is '3'"),
        ({"depth": True}, "`depth` is True"),
        ({"depth": 2.5}, "`depth` is 2.5"),
        ({"depth": 1000}, "not between 3 and 64"),
        ({"least": float("nan")}, "not between 0 and 1"),
        ({"memory_mib": 0}, "not between 1 and 4096"),
        ({"remember": 1}, "`remember` is 1"),
    ],
)
def test_what_is_wrong_is_refused(given_: object, says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        settings_from(given_)


@given(
    st.dictionaries(
        st.sampled_from(OPTIONS) | st.text(max_size=5),
        st.integers() | st.floats() | st.booleans() | st.text(max_size=5) | st.none(),
    )
)
def test_any_mapping_is_settings_or_refused(given_: dict[str, object]) -> None:
    try:
        found = settings_from(given_)
    except ValueError:
        return
    assert 3 <= found.depth <= 64
    assert 0 <= found.least <= 1
