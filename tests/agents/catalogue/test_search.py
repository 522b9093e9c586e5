"""Words, scores and the choice without a model."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.agents.catalogue.made_up import large, spec
from weft.agents.catalogue import Catalogue, CatalogueIndex, LexicalChooser
from weft.agents.catalogue.bm25 import Bm25
from weft.agents.catalogue.words import clauses, stem, terms, words

LARGE = large()
INDEX = CatalogueIndex(LARGE)
TEXTS = st.text(max_size=60) | st.lists(
    st.sampled_from(sorted({word for tool in LARGE.tools for word in words(tool)})), max_size=8
).map(" ".join)


def test_names_are_split() -> None:
    assert [*words("getHTTPResponse_code2")] == ["get", "http", "response", "code", "2"]
    assert [*words("Café-ÜBER")] == ["cafe", "uber"]
    assert [*words("天気 погода")] == ["天気", "погода"]
    assert terms("Please find the cities' analyses of a glass") == [
        *("find", "city", "analyse", "glass")
    ]
    assert [stem(word) for word in ("gas", "bus", "analysis", "天気s")] == [
        *("gas", "bus", "analysis", "天気s")
    ]


def test_clauses_leave_quotations_out() -> None:
    text = "Book a train to Rome, then find a hotel. Send 'so, and so' to Ann and don't wait"
    assert clauses(text) == [
        "Book a train to Rome",
        "then find a hotel",
        "Send   to Ann",
        "don't wait",
    ]


def test_scores_are_those_of_bm25() -> None:
    index = Bm25([{"a": 2.0, "b": 1.0}, {"b": 3.0}, {"c": 1.0}], k1=1.2, b=0.5)
    idf = math.log(1 + (3 - 1 + 0.5) / 1.5)
    mean = 7 / 3
    expected = idf * 2 * 2.2 / (2 + 1.2 * (0.5 + 0.5 * 3 / mean))
    assert index.scores(["a", "a", "unknown"]) == {0: pytest.approx(expected)}
    assert Bm25([]).scores(["a"]) == {}
    assert index.idf("a") > index.idf("b")


@given(
    st.lists(st.dictionaries(st.sampled_from("abcd"), st.floats(0.1, 9), max_size=4), max_size=6),
    st.lists(st.sampled_from("abcde")),
)
def test_only_documents_with_a_term_have_a_score(
    documents: list[dict[str, float]], asked: list[str]
) -> None:
    found = Bm25(documents).scores(asked)
    assert set(found) == {n for n, one in enumerate(documents) if one.keys() & set(asked)}
    assert all(score > 0 for score in found.values())


def test_the_field_decides_between_equal_tools() -> None:
    tools = [
        (spec("lookUpA", "find a record"), ("Music",)),
        (spec("lookUpB", "find a record"), ("Courts",)),
        (spec("judge", "a judge of a court"), ("Courts",)),
    ]
    index = CatalogueIndex(Catalogue(tools))
    assert [name for name, _ in index.ranked("find the record of the judge")][:3] == [
        *("judge", "lookUpB", "lookUpA")
    ]
    assert index.fields("a judge")[0] == ("Courts",)
    assert index.ranked("nothing of it") == []


@settings(max_examples=60)
@given(TEXTS, st.integers(0, 3_000))
def test_a_choice_is_of_the_catalogue_and_within_the_limit(text: str, limit: int) -> None:
    for chooser in (LexicalChooser(INDEX), LexicalChooser(INDEX, whole=0, clause=0)):
        choice = chooser.choice(text, limit)
        assert len(set(choice.tools)) == len(choice.tools)
        assert choice.tokens == sum(LARGE.tools[name].tokens for name in choice.tools) <= limit
        assert choice == chooser.choice(text, limit)


def test_every_tool_of_a_large_catalogue_is_found_by_its_name() -> None:
    chooser = LexicalChooser(INDEX)
    for name in list(LARGE.tools)[::50]:
        assert name in chooser.choice(f"please use {name}", 1_000).tools


def test_a_small_part_of_a_long_request_is_not_outvoted() -> None:
    storms = [spec(f"storm{n}", "storm wind rain flood damage report") for n in range(30)]
    train = spec("bookTrain", "book a seat on a train")
    tools = Catalogue((tool, ("all",)) for tool in [*storms, train])
    request = (
        "Report all storm wind rain flood damage of the storm with wind and rain and flood, "
        "then book one train seat."
    )
    limit = 6 * max(tool.tokens for tool in tools.tools.values())
    assert "bookTrain" in LexicalChooser(CatalogueIndex(tools)).choice(request, limit).tools


def test_a_clear_request_is_offered_few_tools_and_one_without_words_none() -> None:
    name = next(iter(LARGE.tools))
    assert len(LexicalChooser(INDEX).choice(name, 100_000).tools) < 60
    assert LexicalChooser(INDEX).choice("?!", 100_000).tools == ()
