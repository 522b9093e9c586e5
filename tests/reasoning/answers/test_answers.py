"""Canonical keys: equal answers agree, hostile text is read in time or not at all."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from weft.core.errors import BuildError
from weft.reasoning.answers import answer_key, answer_text, canonical, choice_key, reader
from weft.reasoning.answers.number import number, written

ALIKE = {
    "1/2": ["0.5", ".50", "1/2", r"\frac{1}{2}", r"\dfrac12", r"$\frac{1}{2}$", "0.5 cm", "½"],
    "-3/4": ["-0.75", r"-\frac{3}{4}", "-3/4", "\u22120.75", r"\frac{-3}{4}"],
    "1234": ["1,234", "1234", "1234.0", "$1,234", "1.234e3", "1,234 apples", r"1.234 \times 10^3"],
    "3/2": ["1 1/2", r"1\frac{1}{2}", "1.5", "3/2"],
    "50": ["50%", r"50\%", "50", r"50^\circ", "50 degrees"],
    "12": [r"12 \text{ cm}^2", "12 m/s", "12cm²", "x = 12", r"\boxed{12}", r"\(x=12\)", "+12."],
    "2000000": ["2 million", "2e6", "2,000,000"],
    "1024": ["2^{10}", "1024"],
    "(1/2,3)": [r"\left(\frac{1}{2}, 3\right)", "(0.5, 3)"],
    "{1,2}": [r"\{2, 1\}", "{1,2}"],
    "paris": ["Paris.", "**Paris**", ' "paris" ', r"\text{Paris}"],
    "b": ["(B)", "B", "b.", r"\text{(B)}"],
    r"3\sqrt{2}": [r"3\sqrt{2}", r"$3\sqrt2$", r"3 \sqrt{2}"],
    "x^2+1": ["x^2 + 1", "x^2+1"],
}


@pytest.mark.parametrize(("key", "forms"), ALIKE.items())
def test_one_answer_in_many_forms_has_one_key(key: str, forms: list[str]) -> None:
    assert {form: canonical(form) for form in forms} == dict.fromkeys(forms, key)


def test_answers_that_differ_have_keys_that_differ() -> None:
    forms = ["1/2", "2", "-2", "0.05", "(1,2)", "(2,1)", "[1,2)", "yes", "no", "x", "50", "1/3"]
    assert len({canonical(form) for form in forms}) == len(forms)


@pytest.mark.parametrize("text", ["", "  ", "$$", "a" * 401, "**", r"\boxed{}"])
def test_nothing_to_read_is_no_class_of_votes(text: str) -> None:
    assert canonical(text) is None


@given(st.fractions(-1000, 1000, max_denominator=1000))
def test_a_fraction_is_read_in_every_form(value: Fraction) -> None:
    above, below = value.numerator, value.denominator
    forms = [f"{above}/{below}", rf"\frac{{{above}}}{{{below}}}", f"${above} / {below}$"]
    assert {canonical(form) for form in forms} == {written(value)}
    if below == 1:
        assert canonical(f"{above:,}") == written(value)


@given(st.decimals(-10_000, 10_000, places=3))
def test_a_decimal_is_exact(value: object) -> None:
    assert number(f"{value}") == Fraction(str(value))


@given(st.text(max_size=600))
@example("1e" + "9" * 300)
@example("9" * 5000)
@example("1/0")
@example(r"\frac{" * 100)
@example("((((((1))))))")
@example("²³")
@example("٣")
def test_no_text_raises_and_a_key_is_its_own_key(text: str) -> None:
    key = canonical(text)
    if key is not None and number(text) is not None:
        assert canonical(key) == key
    answer_key(text)
    choice_key(text)


@pytest.mark.parametrize(
    ("completion", "text"),
    [
        (r"first \boxed{1}, no: \boxed{\frac{1}{2}}.", r"\frac{1}{2}"),
        (r"\boxed{3} and then \boxed{4", "3"),
        ("so\n#### 1,234", "1,234"),
        ("<answer>(51-49)*3</answer>", "(51-49)*3"),
        ("<think>the answer is 3</think>The final answer is: $x$.", "$x$"),
        ("Answer: **12** apples", "12"),
        ("The answer is 3.14 meters. I am sure.", "3.14 meters"),
        ("I think the answer is unclear.\nThe answer is (B) Paris.", "(B) Paris"),
        ("we get 5 + 7 = 12\nand so 13 minus 1 = **12**.", "12"),
        ("Then 3 * 6 = $18.", "18"),
        ("Paris", "Paris"),
        ("Yes, 17 is a prime number.", "Yes, 17 is a prime number."),
        ("1. red\n2. blue\n3. green", "1. red\n2. blue\n3. green"),
        ("nothing in these many words could be taken for an answer. " * 9, None),
    ],
)
def test_the_last_marked_answer_counts(completion: str, text: str | None) -> None:
    assert answer_text(completion) == text


@pytest.mark.parametrize(
    ("completion", "key"),
    [
        ("Yes, 17 is a prime number.", "yes, 17 is a prime number"),
        ("No, 17 is not a prime number.", "no, 17 is not a prime number"),
        ("17 is a prime number.", "17 is a prime number"),
        ("17 is not a prime number", "17 is not a prime number"),
        ("Answer: 17 is not prime", "17 is not prime"),
        ("It is not 17.", "it is not 17"),
        ("The only one that is not prime is 17.", "the only one that is not prime is 17"),
        ("The answer is 17 and nothing else", "17 and nothing else"),
        ("1. red\n2. blue\n3. green", "1. red 2. blue 3. green"),
        ("1. green\n2. blue\n3. red", "1. green 2. blue 3. red"),
        ("The 3 primary colours are red, green and blue", None),
    ],
)
def test_a_number_inside_a_sentence_is_not_its_answer(completion: str, key: str | None) -> None:
    assert answer_key(completion) == (key or completion.casefold())


@pytest.mark.parametrize(
    ("completion", "key"),
    [
        ("17", "17"),
        ("17 apples.", "17"),
        ("$1,234", "1234"),
        ("12 miles per hour", "12"),
        ("Answer: 17 apples", "17"),
        ("She has 3 + 4 = 7 apples.", "7"),
        ("It is **42**.", "42"),
        ("So that's 42", "42"),
        (r"It is even, so \boxed{17}, which is a prime.", "17"),
    ],
)
def test_an_answer_that_is_a_number_is_read_as_one(completion: str, key: str) -> None:
    assert answer_key(completion) == key


def test_who_asks_for_a_number_gets_the_last_one() -> None:
    said = "we get 5 + 7 = 12\nand so 13 minus 1"
    assert answer_text(said, numeric=True) == "1"
    assert reader("number")("She sells 9 eggs and makes $18 every day.", True) == "18"


def test_what_was_cut_off_has_only_a_marked_answer() -> None:
    assert answer_key("we get 5 + 7 = 12\nso", whole=False) is None
    assert answer_key("The answer is 12. Let me check", whole=False) == "12"


def test_choices_are_single_letters() -> None:
    assert choice_key("The answer is (b) Paris.") == "B"
    assert choice_key("The answer is Paris.") is None
    assert choice_key("B) 17 is prime") == "B"
    assert choice_key("(b)") == choice_key("B") == choice_key("B - Paris") == "B"
    assert choice_key("I think it is a man") is None
    assert choice_key("Answer: A man") is None


@pytest.mark.parametrize(
    "hostile", [r"\boxed{", "<answer>", "the answer is ", "#### ", "1,234", "((((", r"\frac{1}"]
)
def test_long_hostile_completions_are_read_in_bounded_work(hostile: str) -> None:
    answer_key(hostile * (2_000_000 // len(hostile)))


def test_readers_by_name_and_by_function() -> None:
    own = reader(lambda text, _: text[:1])
    assert own("abc", True) == "a"
    assert reader("number")("it is five", True) is None
    assert reader("number")("The answer is 5 cm", True) == "5"
    assert reader("text")("Some  Text", True) == "some text"
    with pytest.raises(BuildError, match="numbers") as caught:
        reader("numbers")
    assert "did you mean 'number'?" in str(caught.value)
