"""Names, texts, schemas and values of others: bounded and clean."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.profile import examples
from weft.agents.untrusted import Secrets, identifiers, printable, vet_schema
from weft.core.errors import BuildError
from weft.core.ids import is_name
from weft.validation import SchemaRefused, misfit


def test_a_copy_keeps_patterns_and_known_keywords_only() -> None:
    schema = {"properties": {"pattern": {"type": "string", "pattern": "(a+)+$", "x-own": 1}}}
    copy = vet_schema(schema)
    assert copy == {"properties": {"pattern": {"type": "string", "pattern": "(a+)+$"}}}
    assert misfit({"pattern": "a" * 40 + "!"}, copy) is not None


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (7, "must be an object"),
        ({"items": 7}, "is int"),
        ({"type": "strange"}, "not a JSON Schema"),
        ({"properties": []}, "is list"),
        ({"anyOf": {}}, "is dict"),
        ({"$ref": "http://example.org/s"}, "leads nowhere"),
        ({"$ref": "#/$defs/a"}, "leads nowhere"),
        ({"$ref": "#a"}, "leads nowhere"),
        ({"enum": list(range(30_000))}, "more than 10,000 parts"),
        ({"enum": ["x" * 300_000]}, "more than 200,000 characters"),
        ({"pattern": "(?=a)"}, "linear time"),
        ({"patternProperties": {"(": {}}}, "no regular expression"),
    ],
)
def test_schemas_that_are_refused(schema: object, why: str) -> None:
    with pytest.raises(SchemaRefused, match=why):
        vet_schema(schema)


def test_a_schema_that_is_nested_too_deeply() -> None:
    schema: dict[str, Any] = {}
    for _ in range(100_000):
        schema = {"items": schema}
    with pytest.raises(SchemaRefused, match="deeper than 64"):
        vet_schema(schema)


@examples(200)
@given(st.lists(st.text(max_size=80)), st.sampled_from(["", "files_"]))
def test_names_become_identifiers(names: list[str], prefix: str) -> None:
    found = identifiers(names, prefix)
    assert list(found) == list(dict.fromkeys(names))
    assert all(is_name(here) and len(here) <= 64 for here in found.values())
    assert all(here.startswith(prefix) for here in found.values())
    assert len(set(found.values())) == len(found)
    assert identifiers(reversed(names), prefix) == found


@examples(100)
@given(st.text(), st.integers(4, 30), st.booleans())
def test_texts_are_safe_to_show(text: str, limit: int, lines: bool) -> None:
    found = printable(text, limit, lines=lines)
    assert len(found) <= limit
    assert all(character.isprintable() or character in "\n\t" for character in found)
    assert lines or found.isprintable()


def test_secrets_are_hidden_and_never_shown() -> None:
    environment = {"TOKEN": "abcdef", "HEADER": "Bearer ghijkl", "TINY": "x"}
    secrets = Secrets(environment, environment)
    assert secrets["TOKEN"] == "abcdef"
    assert secrets.hidden("abcdef Bearer ghijkl ghijkl x") == "$TOKEN $HEADER $HEADER x"
    assert "abcdef" not in repr(secrets)
    with pytest.raises(BuildError, match="ABSENT is not set"):
        Secrets(["ABSENT"], environment)
