"""Facts and patterns: read as written, and anything else refused with its column."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.profile import examples
from weft.core.errors import BuildError
from weft.core.facts import (
    Fact,
    FactPattern,
    Parameter,
    Variable,
    parse_fact,
    parse_pattern,
)

NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,5}", fullmatch=True).filter(lambda name: name != "not")
FACTS = st.builds(Fact, NAMES, st.lists(st.text(max_size=8), max_size=3).map(tuple))
TERMS = st.text(max_size=8) | st.builds(Parameter, NAMES) | st.builds(Variable, NAMES | st.just(""))
PATTERNS = st.builds(FactPattern, NAMES, st.lists(TERMS, max_size=3).map(tuple), st.booleans())


@given(FACTS)
@examples(300)
def test_a_fact_is_read_as_it_is_written(fact: Fact) -> None:
    assert parse_fact(str(fact)) == fact


@given(PATTERNS)
@examples(300)
def test_a_pattern_is_read_as_it_is_written(pattern: FactPattern) -> None:
    assert parse_pattern(str(pattern)) == pattern


@given(PATTERNS, FACTS)
@examples(300)
def test_a_pattern_matches_what_it_becomes_when_it_is_bound(
    pattern: FactPattern, fact: Fact
) -> None:
    bound = FactPattern(pattern.name, pattern.terms).bind(
        {hole: f"c{place}" for place, hole in enumerate(pattern.holes) if hole != Variable()}
    )
    if not bound.holes:
        assert bound.match(bound.fact(), {}) == {}
        assert pattern.match(bound.fact(), {}) is not None
    same = fact.name == pattern.name and len(fact.arguments) == len(pattern.terms)
    assert same or pattern.match(fact, {}) is None


def test_one_name_stands_for_one_constant() -> None:
    pattern = parse_pattern("next(?here, ?here)")
    assert pattern.match(parse_fact("next(a, a)"), {}) == {Variable("here"): "a"}
    assert pattern.match(parse_fact("next(a, b)"), {}) is None
    assert parse_pattern("next(*, *)").match(parse_fact("next(a, b)"), {}) == {}


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("dark", Fact("dark")),
        ("dark()", Fact("dark")),
        ("  at( kitchen ,3 ) ", Fact("at", ("kitchen", "3"))),
        ('at("living room, 2nd", "")', Fact("at", ("living room, 2nd", ""))),
        ("größe(-1.5)", Fact("größe", ("-1.5",))),
    ],
)
def test_facts(text: str, fact: Fact) -> None:
    assert parse_fact(text) == fact


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "a name is expected in column 1, here is the end"),
        ("not", "a name is expected"),
        ("not not open(x)", "a name is expected"),
        ("3(x)", "a name is expected"),
        ("open(", "an argument is expected in column 6"),
        ("open(a b)", "a comma or ) is expected in column 8"),
        ("open(a))", "nothing may follow in column 8"),
        ("open(a) and shut(b)", "nothing may follow"),
        ("open({a)", "an argument is expected"),
        ("open(f(x))", "a comma or ) is expected"),
        ('open("a)', "an argument is expected"),
        ('open("\\x")', "is no JSON string"),
        ('open("\\ud800")', "is no JSON string"),
        ("open(__import__('os'))", "a comma or ) is expected"),
        ("o" * 501, "more than 500 characters"),
    ],
)
def test_what_is_no_fact_is_refused(text: str, why: str) -> None:
    with pytest.raises(BuildError) as caught:
        parse_pattern(text)
    assert why in caught.value.message


@pytest.mark.parametrize("text", ["not open(a)", "open({x})", "open(?x)", "open(*)"])
def test_patterns_and_denials_are_no_facts(text: str) -> None:
    with pytest.raises(BuildError) as caught:
        parse_fact(text)
    assert caught.value.hint
