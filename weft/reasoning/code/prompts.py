"""Prompts for writing, repairing, testing and comparing programs.

The steps follow PlanSearch (arXiv 2409.03733), S* (arXiv 2502.14382) and CodeMonkeys (arXiv
2501.14723); the words are ours. Change the version with any word.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.core.values import JsonSchema, Message
from weft.reasoning.code.problem import CodeExample, CodeProblem
from weft.reasoning.parsing import fence

PROMPT_VERSION: Final = "code-2"

_WRITE: Final = (
    "You write Python programs that solve problems. Use only the standard library. Write the whole "
    "program in one block that begins with ```python, and nothing after it."
)
_MEND: Final = (
    "The program was run, and this went wrong:\n{failures}\n\nSay in a sentence what is wrong with "
    "it, then write the whole program again, mended."
)
_OBSERVE: Final = (
    "You study a programming problem before anybody solves it. Write {number} observations about "
    "it, as a numbered list of single sentences: properties of the input, cases that are easy to "
    "miss, ideas and data structures that could help. No code."
)
_DEEPEN: Final = (
    "You study a programming problem. Some observations are there already. Write {number} new "
    "observations that follow from these, or from several of them together, as a numbered list of "
    "single sentences. No code."
)
_PLAN: Final = (
    "You plan the solution of a programming problem, on the observations that are given. Write in "
    "plain language how to solve it, step by step, with its cost for the largest input. No code."
)
_CRITICISE: Final = (
    "A colleague's plan for a programming problem is wrong or too slow. Find out where, and write "
    "a plan that is right, in plain language, step by step. No code."
)
_SKETCH: Final = (
    "You turn a plan for a programming problem into pseudo-code: short lines, one action in each, "
    "every case of the plan covered."
)
_INPUTS: Final = (
    "You test programs. For the problem that is given, write {number} valid inputs that are small "
    "and different from one another: ordinary ones, the smallest, and cases that are easy to get "
    'wrong. {form} Reply with one JSON object: {{"inputs": [...]}}.'
)
_TESTS: Final = (
    "You test programs. For the problem that is given, write {number} tests that are small and "
    "different from one another, and whose results you have worked out with care. {form} Reply "
    'with one JSON object: {{"tests": [{{"input": ..., "expected": ...}}, ...]}}.'
)
_SEPARATE: Final = (
    "Two programs were written for one problem. Find a valid, small input on which they print "
    'different results. {form} Reply with one JSON object: {{"inputs": [...]}} with up to three.'
)
_JUDGE: Final = (
    "Two programs for one problem were run on inputs for which they print different results. Work "
    "out the right result for each input yourself, step by step. Then say which program is right "
    "more often, in a last line: `Verdict: A`, `Verdict: B`, or `Verdict: neither`."
)
_READS: Final = (
    "An input is a text, exactly as the program reads it; the result is the text it prints."
)
_CALLS: Final = "An input is a JSON list of the arguments of `{function}`, the result a JSON value."

INPUTS_SCHEMA: Final[JsonSchema] = {
    "type": "object",
    "properties": {"inputs": {"type": "array", "maxItems": 16}},
    "required": ["inputs"],
    "additionalProperties": False,
}
TESTS_SCHEMA: Final[JsonSchema] = {
    "type": "object",
    "properties": {
        "tests": {
            "type": "array",
            "maxItems": 16,
            "items": {"type": "object", "required": ["input", "expected"]},
        }
    },
    "required": ["tests"],
    "additionalProperties": False,
}

Messages = tuple[Message, ...]


def write_messages(
    problem: CodeProblem, system: str, guide: Sequence[tuple[str, str]] = ()
) -> Messages:
    """Asks for a program; `guide` holds titles and texts to follow."""
    return _messages(system, _WRITE, problem, guide, f"Write the program. {_defined(problem)}")


def mend_messages(before: Messages, answer: str, failures: Sequence[str]) -> Messages:
    """The conversation `before`, the model's `answer`, and the failures of that."""
    repair = _MEND.format(failures=fence("\n\n".join(failures)))
    return (*before, Message("assistant", answer), Message("user", repair))


def observe_messages(problem: CodeProblem, number: int) -> Messages:
    """Asks for observations."""
    return _messages("", _OBSERVE.format(number=number), problem, (), "Write the observations.")


def deepen_messages(problem: CodeProblem, known: Sequence[str], number: int) -> Messages:
    """Asks for observations that follow from `known`."""
    rules = _DEEPEN.format(number=number)
    return _messages("", rules, problem, [_observed(known)], "Write the new observations.")


def plan_messages(problem: CodeProblem, known: Sequence[str]) -> Messages:
    """Asks for a plan based on observations."""
    return _messages("", _PLAN, problem, [_observed(known)], "Write the plan.")


def criticise_messages(problem: CodeProblem, plan: str) -> Messages:
    """Asks for a better plan."""
    return _messages("", _CRITICISE, problem, [("Plan", plan)], "Write the right plan.")


def sketch_messages(problem: CodeProblem, plan: str) -> Messages:
    """Asks for pseudo-code."""
    return _messages("", _SKETCH, problem, [("Plan", plan)], "Write the pseudo-code.")


def inputs_messages(problem: CodeProblem, number: int) -> Messages:
    """Asks for inputs, without results."""
    rules = _INPUTS.format(number=number, form=_form(problem))
    return _messages("", rules, problem, (), "Write the inputs.")


def tests_messages(problem: CodeProblem, number: int) -> Messages:
    """Asks for inputs and their results."""
    rules = _TESTS.format(number=number, form=_form(problem))
    return _messages("", rules, problem, (), "Write the tests.")


def separate_messages(problem: CodeProblem, one: str, other: str) -> Messages:
    """Asks for inputs on which two programs differ."""
    rules = _SEPARATE.format(form=_form(problem))
    guide = [("Program A", one), ("Program B", other)]
    return _messages("", rules, problem, guide, "Write the inputs.")


def judge_messages(problem: CodeProblem, cases: Sequence[tuple[str, str, str]]) -> Messages:
    """Asks which of two programs is right; a case is an input, and the results of A and B."""
    titles = ("Input", "Result of A", "Result of B")
    guide = [part for case in cases for part in zip(titles, case, strict=True)]
    return _messages("", _JUDGE, problem, guide, "Which program is right?")


def _form(problem: CodeProblem) -> str:
    return _CALLS.format(function=problem.function) if problem.function else _READS


def _defined(problem: CodeProblem) -> str:
    if not problem.function:
        return "It reads its input from standard input and prints the result, and nothing else."
    return (
        f"It defines `{problem.function}`, which returns the result; it reads and prints nothing."
    )


def _observed(known: Sequence[str]) -> tuple[str, str]:
    return "Observations", "\n".join(f"- {each}" for each in known) or "(none)"


def _messages(
    system: str, rules: str, problem: CodeProblem, guide: Sequence[tuple[str, str]], request: str
) -> Messages:
    shown = [("Problem", problem.statement), *_examples(problem), *guide]
    parts = [f"{title}:\n{fence(text)}" for title, text in shown]
    instructions = "\n\n".join(part for part in (system.strip(), rules) if part)
    return Message("system", instructions), Message("user", "\n\n".join((*parts, request)))


def _examples(problem: CodeProblem) -> list[tuple[str, str]]:
    """The first few public tests; a problem may have hundreds."""
    shown = problem.tests[:3]
    text = "\n".join(_example(problem, test) for test in shown)
    return [("Examples", text)] if shown else []


def _example(problem: CodeProblem, test: CodeExample) -> str:
    if problem.function:
        return f"{problem.shown(test.given)} returns {test.expected}"
    return f"Input:\n{test.given}\nResult:\n{test.expected}\n"
