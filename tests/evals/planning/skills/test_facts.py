"""Facts of texts: numbers in one spelling, names inside sentences, echoes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evals.planning.skills.facts import echoes, result_facts, stated, supported


def test_numbers_have_one_spelling() -> None:
    assert stated("pay $2,739.50, on the 01st at 2pm") == {"2739.5", "1", "2"}
    assert stated("order ABC123 and a9s8") == {"abc123", "a9s8"}
    assert {"2", "14", "9"} <= supported("2023-09-12 14:00:00")
    assert "9" in supported("in September")


def test_names_are_capitalised_words_inside_sentences() -> None:
    assert stated("Bob met Ann. Then they saw Dr. Smith's dog in May.") == {"ann", "dr", "smith"}
    assert stated('He said: "Come!"\nNobody did.') == frozenset()


def test_facts_of_a_result_are_in_its_values() -> None:
    assert result_facts({"Name": "Ann Lee", "n": [3, None, True, {"x": "at 5"}]}) == {
        "ann",
        "lee",
        "3",
        "5",
    }
    assert result_facts("success") == frozenset()


def test_eight_words_in_a_row_are_an_echo() -> None:
    dialogue = "User: one two three, four five six seven eight nine."
    assert echoes("One two three four five six seven eight", dialogue)
    assert not echoes("one two three four five six seven", dialogue)


@given(st.text())
def test_a_text_supports_what_it_states(text: str) -> None:
    assert stated(text) <= supported(text)
