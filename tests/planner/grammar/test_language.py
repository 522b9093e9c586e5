"""What the grammars let a model write the reader takes; what the reader refuses, they refuse."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

import jsonschema
import pytest

from evals.planning.registries import random_registry
from tests.planner.grammar.random_texts import Grammar
from weft.core.errors import PlanError
from weft.core.values import ToolSpec
from weft.planner.grammar import GrammarLimits, most_steps, plan_grammar, step_grammar
from weft.planner.plan import Plan
from weft.planner.text.reader import PlanReader, read
from weft.planner.text.writer import write, write_value

SHORT = GrammarLimits(chars=12, items=3, thought_chars=12, depth=6, path_steps=3)
LINES = 6
EACH = 50


def whole_plans(registries: int, seed: int) -> Iterator[tuple[Grammar, str, tuple[ToolSpec, ...]]]:
    source = random.Random(seed)
    for _ in range(registries):
        tools = random_registry(source)
        steps = min(LINES - 1, most_steps(tools))
        grammar = Grammar(plan_grammar(tools, steps, limits=SHORT))
        for _ in range(EACH):
            yield grammar, grammar.draw(source), tools


def lines(plans: int, seed: int) -> Iterator[tuple[Grammar, str, PlanReader]]:
    """Each line with its grammar, and a reader of what stands before it."""
    source = random.Random(seed)
    for _ in range(plans):
        tools = random_registry(source)
        reader = PlanReader(tools)
        number = 1
        while not reader.complete:
            known, calls = reader.known, number < LINES
            grammar = Grammar(step_grammar(tools, known, number, SHORT, calls=calls))
            for _ in range(EACH // LINES):
                yield grammar, grammar.draw(source), PlanReader(tools, known=known)
            before = PlanReader(tools, known=known)
            following = grammar.draw(source)
            if refusal(before, following, line=True) is None:
                reader.feed(following)
                number += 1


def literals_fit(plan: Plan, tools: tuple[ToolSpec, ...]) -> None:
    """Arguments without references fit their schemas in every keyword."""
    schemas = {tool.name: tool.parameters for tool in tools}
    for step in plan.steps:
        if not step.refs:
            arguments = json.loads(write_value(step.arguments))
            jsonschema.validate(arguments, dict(schemas[step.tool]))


def left_to_checker(error: PlanError) -> bool:
    """Free names that are written twice, multiples below 0 or far from it, and conditions on whole
    objects with more keys than the parameters of any tool, of which no more are kept apart.
    """
    told = error.message
    if told.startswith("if $") and "it has no property" in told:
        return True
    return any(words in told for words in ("is given twice", "is not a multiple of"))


def all_are_plans(registries: int, seed: int) -> None:
    used: dict[str, int] = {}
    for _, text, tools in whole_plans(registries, seed):
        if error := refusal(PlanReader(tools), text):
            assert left_to_checker(error), f"{text!r}: {error}"
            continue
        plan = read(text, tools)
        assert read(write(plan), tools) == plan
        literals_fit(plan, tools)
        for word in ("for each", " if ", "$item", "$index", '["', "{", "# "):
            used[word] = used.get(word, 0) + (word in text)
    assert min(used.values()) > registries / 4, used


def all_are_lines(plans: int, seed: int) -> None:
    joined = 0
    for _, line, reader in lines(plans, seed):
        if error := refusal(reader, line, line=True):
            assert left_to_checker(error), f"{line!r}: {error}"
            continue
        assert len(reader.steps) + reader.complete == 1
        joined += reader.complete
    assert joined >= plans


def test_hundreds_of_random_plans_are_read_and_checked() -> None:
    all_are_plans(400 // EACH, seed=1)


def test_random_lines_are_read_and_checked() -> None:
    all_are_lines(20, seed=2)


@pytest.mark.slow
def test_ten_thousand_random_plans_are_read_and_checked() -> None:
    all_are_plans(10_000 // EACH, seed=3)


@pytest.mark.slow
def test_thousands_of_random_lines_are_read_and_checked() -> None:
    all_are_lines(700, seed=4)


def mutated(text: str, source: random.Random) -> str:
    """`text` with one thing changed: a character, a digit, or a word for another one in it."""
    at = source.randrange(len(text))
    kind = source.randrange(5)
    if kind == 0:
        return text[:at] + text[at + 1 :]
    if kind == 1:
        return text[:at] + source.choice('$"().,[]{}=#0aé\\\n ') + text[at:]
    if kind == 2:
        return text[:at] + source.choice('$"().,[]{}=019tfz') + text[at + 1 :]
    if kind == 3:
        numbers = [i for i, char in enumerate(text) if char.isdigit()]
        at = source.choice(numbers)
        return text[:at] + str(source.randrange(10)) + text[at + 1 :]
    words = text.replace("(", " ").replace(")", " ").replace(", ", " ").split()
    return text.replace(source.choice(words), source.choice(words), 1)


def refusal(reader: PlanReader, text: str, *, line: bool = False) -> PlanError | None:
    """What the reader says against a plan, or against a line of one."""
    try:
        steps = reader.feed(text)
        if not (line and len(steps) == 1 and text.endswith("\n")):
            reader.close()
    except PlanError as error:
        return error
    return None


def test_what_the_reader_refuses_the_grammar_of_a_plan_refuses() -> None:
    source, refused = random.Random(5), 0
    for grammar, text, tools in whole_plans(6, seed=6):
        for _ in range(3):
            wrong = mutated(text, source)
            error = refusal(PlanReader(tools), wrong)
            if error and not left_to_checker(error):
                refused += 1
                assert not grammar.holds(wrong), f"{wrong!r}: {error}"
    assert refused > 400


def test_what_the_reader_refuses_the_grammar_of_a_line_refuses() -> None:
    source, refused = random.Random(7), 0
    for grammar, text, reader in lines(13, seed=8):
        wrong = mutated(text, source)
        error = refusal(reader, wrong, line=True)
        if error and not left_to_checker(error):
            refused += 1
            assert not grammar.holds(wrong), f"{wrong!r}: {error}"
    assert refused > 100
