"""The leak scan: planted leaks are found, honest candidates pass."""

from __future__ import annotations

import random

import pytest

from weft.evaluation.case import Case
from weft.optimisation.edits.patch import Patch
from weft.optimisation.leaks import leaks_of

SPLITS = ("train", "dev", "held_out")
VOCABULARY = [a + b + c for a in ("ba", "ke", "li", "mo", "su") for b in "nrt" for c in "aeiou"]


def data(seed: int, cases: int = 30) -> list[Case]:
    """Questions of one template, with short answers: yes, no and small numbers."""
    draw = random.Random(seed)
    made = []
    for number in range(cases):
        about = " ".join(draw.sample(VOCABULARY, 8))
        gold = draw.choice(("yes", "no", str(draw.randrange(20))))
        question = f"Is it true of the {about} that {draw.randrange(10)} are left?"
        made.append(Case(f"q{number}", {"question": question}, gold, split=SPLITS[number % 3]))
    return made


def prompt(text: str) -> Patch:
    return Patch.of([{"edit": "set_prompt", "node": "solve", "prompt": text}])


def demonstrations(*pairs: tuple[str, str]) -> Patch:
    shown = [{"user": user, "assistant": answer} for user, answer in pairs]
    edit = {"edit": "set_demonstrations", "node": "solve", "demonstrations": shown}
    return Patch.of([edit])


def planted(kind: str, draw: random.Random, cases: list[Case]) -> tuple[Patch, str]:
    case = draw.choice([each for each in cases if each.split != "train"])
    question, gold = case.inputs["question"], str(case.expected)
    if kind == "exact":
        return demonstrations((question, gold)), case.id
    if kind == "spelling":
        return demonstrations((question.upper().replace(" ", "\n  "), gold.title())), case.id
    if kind == "word":
        words = question.split()
        words[draw.randrange(5, 13)] = "thing"
        return demonstrations((" ".join(words), gold)), case.id
    if kind == "instruction":
        return prompt(
            f"Answer shortly. If asked '{question}' then say {gold}. {{{{ q }}}}"
        ), case.id
    listed = [each for each in cases if each.split != "train"]
    return prompt("Known: " + ", ".join(f"{e.id}: {e.expected}" for e in listed)), case.id


@pytest.mark.parametrize("kind", ["exact", "spelling", "word", "instruction", "list"])
def test_planted_leaks_are_found_20_of_20_of_each_kind(kind: str) -> None:
    for seed in range(20):
        cases = data(seed)
        patch, name = planted(kind, random.Random(seed), cases)
        assert name in {leak.case for leak in leaks_of(patch, cases)}, (kind, seed)


def test_a_thousand_honest_candidates_raise_no_alarm() -> None:
    for seed in range(1000):
        draw = random.Random(f"honest {seed}")  # not the stream of the data
        cases = data(seed % 20)
        train = [each for each in cases if each.split == "train"]
        shown = draw.sample(train, 4)
        patch = demonstrations(*((e.inputs["question"], str(e.expected)) for e in shown))
        rule = f"Say yes or no, or {draw.randrange(20)}. Step 1: {draw.randrange(20)} words."
        words = " ".join(draw.sample(VOCABULARY, 12))
        patch = patch.then(*prompt(f"{rule} Is it true of the {words}? {{{{ q }}}}").edits)
        assert leaks_of(patch, cases) == []


LONG_GOLD = "the treaty was signed in the old harbour"


@pytest.mark.parametrize(("split", "found"), [("held_out", ["a"]), ("train", [])])
def test_a_long_answer_is_a_leak_by_itself_unless_train_has_it(
    split: str, found: list[str]
) -> None:
    cases = [Case("a", {"q": "where"}, LONG_GOLD, split="held_out"), *data(1)]
    cases.append(Case("b", {"q": "which"}, LONG_GOLD if split == "train" else "x", split="train"))
    leaks = leaks_of(prompt(f"Note that {LONG_GOLD.upper()}."), cases)
    assert [leak.case for leak in leaks] == found


def test_a_train_case_that_a_held_out_case_repeats_is_a_leak() -> None:
    cases = data(3)
    twin = Case("twin", cases[0].inputs, cases[0].expected, split="held_out")
    patch = demonstrations((cases[0].inputs["question"], str(cases[0].expected)))
    assert not leaks_of(patch, cases)
    (leak,) = leaks_of(patch, [*cases, twin])
    assert (leak.case, leak.split, leak.what) == ("twin", "held_out", "its input with its answer")
    assert leak.place == "set_demonstrations solve"


def test_what_the_workflow_has_already_is_no_leak_of_the_patch() -> None:
    cases = data(4)
    text = f"{cases[1].inputs['question']} {cases[1].expected}"
    assert leaks_of(prompt(text), cases)
    assert not leaks_of(prompt(text), cases, before=[text])
