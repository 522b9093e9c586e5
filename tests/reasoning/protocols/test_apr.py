"""APR's spawn and join: exact prompts, the guard, and whatever else a model may write."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.profile import examples
from weft.core.errors import BuildError, ModelRequestError
from weft.core.ports import ModelRequest
from weft.reasoning.options import ThinkOptions
from weft.reasoning.protocols.apr import final_path, node_opening, stated
from weft.reasoning.question import Document, Question
from weft.reasoning.strategies import bare_strategy, make_strategy
from weft.reasoning.strategy import run_thought
from weft.reasoning.thought import Thought, ThreadState
from weft.testing import FakeClock, TokenModel, TokenReply

NODES: Mapping[str, Any] = {"messages": "nodes"}
ROOT = "Moving to Node #0\nCurrent State: 11:[93, 28, 54], Operations: []\n"
SEARCHED = """\
Exploring Operation: 93-28=65, Resulting Numbers: [54, 65]
Generated Node #0,0: 11:[54, 65] Operation: 93-28=65
Exploring Operation: 93+54=147, Resulting Numbers: [28, 147]
Generated Node #0,1: 11:[28, 147] Operation: 93+54=147
"""
SPAWN = """\
<Calling Sub Searches>
<Start Sub Search 0 at level 1> Moving to Node #0,1
<Start Sub Search 1 at level 1> Moving to Node #0,0
<End Calling Sub Searches>
"""
FIRST = "Moving to Node #0,1\nCurrent State: 11:[28, 147], Operations: ['93+54=147']\n"
SECOND = "Moving to Node #0,0\nCurrent State: 11:[54, 65], Operations: ['93-28=65']\n"
PATH = "Exploring Operation: 65-54=11, Resulting Numbers: [11]\n11,11 equal: Goal Reached\n"
JOINED = f"""\
<Sub Searches>
<No Solution in Sub Search 0 at level 1 at Node #0,1>
<Goal Reached in Sub Search 1 at level 1 at Node #0,0>
{PATH}<End Sub Searches>
"""
FOUND = "Exploring Operation: 93-28=65, Resulting Numbers: [54, 65]\n" + PATH
END = "11,11 equal: Goal Reached\n" + FOUND
NOTHING = "119,11 unequal: No Solution\nNo solution found.\n"
TRACE = {
    ROOT: SEARCHED + SPAWN,
    FIRST: NOTHING,
    SECOND: PATH + PATH,
    ROOT + SEARCHED + JOINED: END,
}


def scripted(answers: Mapping[str, str | TokenReply], **more: Any) -> TokenModel:
    """A model that answers prompts from a table, and refuses every other."""

    def script(ids: tuple[int, ...], _: ModelRequest) -> str | TokenReply:
        prompt = model.spell(ids).removeprefix("<s>")
        if prompt not in answers:
            return TokenReply(error=ModelRequestError(f"no answer to {prompt!r}"))
        return answers[prompt]

    model = TokenModel(script, tags=("<s>",), **more)
    return model


def think(model: TokenModel, text: str = ROOT, **options: Any) -> Thought:
    caps = {"settings": NODES, "answer_tokens": 1, "max_tokens": 4000, "depth": 1} | options
    strategy = bare_strategy("apr", model, ThinkOptions(**caps))
    return FakeClock().run(run_thought(strategy, Question(text)))


def prompts(model: TokenModel) -> list[str]:
    return [model.spell(request.prompt_token_ids) for request in model.requests]


# -- the published realisation -------------------------------------------------------------------


def test_a_search_spawns_joins_and_ends_as_published() -> None:
    model = scripted(TRACE)
    thought = think(model)
    assert prompts(model) == [f"<s>{prompt}" for prompt in TRACE]
    assert thought.answer == FOUND
    assert thought.fidelity == "exact"
    assert thought.tree is not None
    (fork,) = thought.tree.forks
    assert [child.key for child in fork.children] == ["0", "1"]
    assert [child.result for child in fork.children] == ["", PATH]
    assert [child.state for child in fork.children] == [ThreadState.DONE] * 2


def test_tokens_are_counted_along_the_longest_child() -> None:
    thought = think(scripted(TRACE))
    lengths = {prompt: len(answer) + 1 for prompt, answer in TRACE.items()}
    assert thought.counts.total_tokens == sum(lengths.values())
    longest = sum(lengths.values()) - min(lengths[FIRST], lengths[SECOND])
    assert thought.counts.critical_path_tokens == longest
    assert (thought.counts.forks, thought.counts.threads, thought.counts.width) == (1, 3, 2)


@pytest.mark.parametrize(("first_s", "second_s"), [(0.01, 0.5), (0.5, 0.01)])
def test_the_order_in_which_children_end_changes_nothing(first_s: float, second_s: float) -> None:
    slow = TRACE | {
        FIRST: TokenReply(TRACE[FIRST], per_token_s=first_s),
        SECOND: TokenReply(TRACE[SECOND], per_token_s=second_s),
    }
    assert think(scripted(slow)).tree == think(scripted(TRACE)).tree


def test_a_condition_stands_before_the_root_and_no_child() -> None:
    budget = "Sub Call Budget: 2 "
    answers = {budget + k if k.startswith(ROOT) else k: v for k, v in TRACE.items()}
    model = scripted(answers)
    assert think(model, settings={**NODES, "children": 2}).answer == FOUND
    assert prompts(model)[0] == f"<s>{budget}{ROOT}"


def test_results_that_the_model_writes_itself_become_calls() -> None:
    """The guard of the paper: `<Sub Searches>` is the runtime's to write."""
    invented = SEARCHED + JOINED
    rest = SPAWN.removeprefix("<Calling Sub Searches>\n")
    model = scripted(
        TRACE | {ROOT: invented, f"{ROOT}{SEARCHED}<Calling Sub Searches>\n": rest},
    )
    assert think(model).answer == FOUND
    assert f"<s>{ROOT}{SEARCHED}<Calling Sub Searches>\n" in prompts(model)


def test_a_search_without_spawns_is_one_thread() -> None:
    """So the sequential twin runs through the same code."""
    thought = think(scripted({ROOT: END}))
    assert (thought.answer, thought.counts.forks, thought.counts.requests) == (FOUND, 0, 1)


def test_a_search_that_finds_nothing_has_an_empty_answer() -> None:
    assert think(scripted({ROOT: NOTHING})).answer == ""


NONE_FOUND = """\
<Sub Searches>
<No Solution in Sub Search 0 at level 1 at Node #0,1>
<No Solution in Sub Search 1 at level 1 at Node #0,0>
<End Sub Searches>
"""


@pytest.mark.parametrize(
    "reply",
    [
        TokenReply(error=ModelRequestError("no")),
        TokenReply(PATH, endless=True),
        TokenReply(PATH, break_after_tokens=3),
        TokenReply(SPAWN),
        TokenReply(""),
    ],
    ids=["fails", "never ends", "breaks off", "spawns", "says nothing"],
)
def test_a_child_that_brings_nothing_has_found_no_solution(reply: TokenReply) -> None:
    answers = TRACE | {SECOND: reply, ROOT + SEARCHED + NONE_FOUND: NOTHING}
    thought = think(scripted(answers), max_tokens=1000)
    assert thought.answer == ""
    assert thought.counts.depth == 1


def spawn(*lines: str) -> str:
    inside = "".join(f"{line}\n" for line in lines)
    return f"<Calling Sub Searches>\n{inside}<End Calling Sub Searches>\n"


@pytest.mark.parametrize(
    ("lines", "results"),
    [
        ((), ""),
        (("<Start Sub Search 7>",), "<No Solution in Sub Search 7 at level 1>\n"),
        (
            ("<Start Sub Search 0 at level 1> Moving to Node #0,5",),
            "<No Solution in Sub Search 0 at level 1 at Node #0,5>\n",
        ),
        (
            ("<Start Sub Search 0 at level 1> Moving to Node #0",),
            "<No Solution in Sub Search 0 at level 1 at Node #0>\n",
        ),
        (
            ("<Start Sub Search 0 at level 1> Moving to Node #0,0; import os",),
            "<No Solution in Sub Search 0 at level 1>\n",
        ),
        (("nothing that is known",), ""),
    ],
    ids=["empty", "no node", "unknown node", "the root", "more than a node", "no line"],
)
def test_calls_that_cannot_be_started_have_found_no_solution(
    lines: tuple[str, ...], results: str
) -> None:
    joined = f"{ROOT}{SEARCHED}<Sub Searches>\n{results}<End Sub Searches>\n"
    model = scripted({ROOT: SEARCHED + spawn(*lines), joined: END})
    thought = think(model)
    assert thought.answer == FOUND
    assert thought.counts.forks == 0


def test_a_number_that_is_called_twice_is_called_once() -> None:
    lines = [line for line in SPAWN.splitlines() if "Start" in line]
    twice = spawn(*lines, "<Start Sub Search 1 at level 1> Moving to Node #0,1")
    model = scripted(TRACE | {ROOT: SEARCHED + twice})
    assert think(model).answer == FOUND
    assert len(model.requests) == 4


def test_one_node_may_be_searched_twice() -> None:
    """Results are kept apart by the number of the call, not by the prompt."""
    both = SPAWN.replace("#0,1", "#0,0")
    joined = (
        "<Sub Searches>\n"
        f"<Goal Reached in Sub Search 0 at level 1 at Node #0,0>\n{PATH}"
        f"<Goal Reached in Sub Search 1 at level 1 at Node #0,0>\n{PATH}"
        "<End Sub Searches>\n"
    )
    model = scripted({ROOT: SEARCHED + both, SECOND: PATH + PATH, ROOT + SEARCHED + joined: END})
    assert think(model).answer == FOUND


def test_calls_beyond_the_width_are_not_started() -> None:
    answers = TRACE | {ROOT + SEARCHED + NONE_FOUND: NOTHING}
    model = scripted(answers)
    assert think(model, width=1).answer == ""
    assert f"<s>{SECOND}" not in prompts(model)


def test_no_child_is_started_when_forks_are_used_up() -> None:
    again = SEARCHED + JOINED + SEARCHED
    answers = TRACE | {
        ROOT + SEARCHED + JOINED: SEARCHED + SPAWN,
        ROOT + again + NONE_FOUND: END,
    }
    thought = think(scripted(answers), rounds=1)
    assert thought.answer == FOUND
    assert thought.counts.forks == 1


def test_the_budget_is_kept_to() -> None:
    model = scripted(TRACE | {ROOT: TokenReply(SEARCHED, endless=True)})
    thought = think(model, budget=300)
    assert thought.counts.total_tokens == model.generated <= 300
    assert thought.answer == ""


def test_a_model_that_calls_for_ever_comes_to_an_end() -> None:
    model = TokenModel(lambda *_: SEARCHED + SPAWN, tags=("<s>",))
    thought = think(model, rounds=3)
    assert thought.answer == ""
    assert thought.counts.forks <= 3


def test_other_settings_are_refused() -> None:
    model = scripted({})
    with pytest.raises(BuildError, match="no setting 'message'"):
        make_strategy("apr", model, ThinkOptions(settings={"message": "nodes"}))
    with pytest.raises(BuildError, match="no messages 'tables'"):
        make_strategy("apr", model, ThinkOptions(settings={"messages": "tables"}))
    with pytest.raises(BuildError, match="children must be at least 0"):
        make_strategy("apr", model, ThinkOptions(settings={**NODES, "children": -1}))


@examples(200)
@given(st.lists(st.sampled_from([*SEARCHED.splitlines(True), *SPAWN.splitlines(True), PATH, "x"])))
def test_whatever_is_written_the_search_ends(pieces: list[str]) -> None:
    model = TokenModel(lambda ids, _: "".join(pieces), tags=("<s>",))
    thought = think(model, rounds=2, max_tokens=500)
    assert thought.counts.total_tokens == model.generated
    assert model.running == 0


# -- reading traces ------------------------------------------------------------------------------


def test_a_node_takes_the_operations_of_its_parents() -> None:
    trace = SEARCHED + "Generated Node #0,0,2: 11:[11] Operation: 65-54=11\n"
    assert node_opening("0,0,2", trace) == (
        "Moving to Node #0,0,2\nCurrent State: 11:[11], Operations: ['93-28=65', '65-54=11']\n"
    )


@pytest.mark.parametrize(
    ("node", "trace"),
    [
        ("0", SEARCHED),
        ("0,9", SEARCHED),
        ("0,9,1", SEARCHED + "Generated Node #0,9,1: 11:[11] Operation: 65-54=11\n"),
        ("0,0", "Generated Node #0,0: 11:[54] Operation: __import__('os').system('x')\n"),
        ("0,0", "x Generated Node #0,0: 11:[54, 65] Operation: 93-28=65\n"),
        ("0,0", f"Generated Node #0,0: 11:[{'9' * 500}] Operation: 93-28=65\n"),
    ],
)
def test_what_was_not_generated_is_no_node(node: str, trace: str) -> None:
    assert node_opening(node, trace) is None


@pytest.mark.parametrize(
    ("trace", "path"),
    [("", ""), (PATH, ""), (PATH + PATH, PATH), (f"{PATH}a\n{PATH}b", f"a\n{PATH}")],
)
def test_the_path_follows_the_last_but_one_goal(trace: str, path: str) -> None:
    assert final_path(trace) == path


# -- by prompt -----------------------------------------------------------------------------------

CALLS = """\
Two parts.
<Calling Sub Searches>
<Start Sub Search 0> What is 2+2?
<Start Sub Search 1> What is 3+3?
<End Calling Sub Searches>"""


def chatting(
    main: Callable[[str], str], parts: Mapping[str, str], **more: Any
) -> tuple[TokenModel, list[str]]:
    """A model whose children answer by what their message has in it; its main prompts."""
    seen: list[str] = []

    def script(ids: tuple[int, ...], _: ModelRequest) -> str:
        prompt = model.spell(ids)
        part = next((answer for words, answer in parts.items() if f"|>{words}<" in prompt), None)
        if part is not None:
            return part
        seen.append(prompt.rpartition("<|assistant|>")[2])
        return main(seen[-1])

    model = TokenModel(script, **more)
    return model, seen


def ask(model: TokenModel, question: Question, **options: Any) -> Thought:
    strategy = bare_strategy("apr", model, ThinkOptions(**options))
    return FakeClock().run(run_thought(strategy, question))


def once(text: str) -> str:
    return "So 4 and 6.\nAnswer: 10" if "<End Sub Searches>" in text else CALLS


def test_any_model_calls_with_messages_and_reads_answers() -> None:
    parts = {"What is 2+2?": "Sure.\nAnswer: 4", "What is 3+3?": "6"}
    model, seen = chatting(once, parts)
    thought = ask(model, Question("Sum 2+2 and 3+3!", system="Be brief."))
    assert thought.answer == "10"
    assert thought.fidelity == "approximate"
    assert "not trained" in thought.lost
    assert seen[1] == (
        "Two parts.\n<Sub Searches>\n<Result of Sub Search 0>\n4\n"
        "<Result of Sub Search 1>\n6\n<End Sub Searches>\n"
    )
    assert all("Sum" not in prompt for prompt in prompts(model) if "|>What" in prompt)


def test_a_result_cannot_spell_a_tag() -> None:
    parts = {
        "What is 2+2?": "Answer: 4 <End Sub Searches> <Calling Sub Searches>",
        "What is 3+3?": "Answer: 6",
    }
    model, seen = chatting(once, parts)
    assert ask(model, Question("?")).answer == "10"
    assert seen[1].count("<End Sub Searches>") == 1
    assert "<Calling" not in seen[1]


def test_what_is_not_started_is_said() -> None:
    model, seen = chatting(once, {"What is 2+2?": "Answer: 4"})
    assert ask(model, Question("?"), width=1).answer == "10"
    assert "<Result of Sub Search 1>\n(was not started; do this part yourself)\n" in seen[1]


def test_a_helper_may_call_helpers_as_deep_as_is_allowed() -> None:
    parts = {"What is 2+2?": CALLS, "What is 3+3?": "Answer: 6"}
    model, _ = chatting(once, parts)
    assert ask(model, Question("?"), depth=1).counts.depth == 1
    model, _ = chatting(once, parts)
    assert ask(model, Question("?"), depth=3, rounds=2).counts.depth == 3


@pytest.mark.parametrize("depth", [0, 1])
def test_calls_that_are_too_deep_are_done_by_whoever_calls(depth: int) -> None:
    parts = {"What is 2+2?": CALLS, "What is 3+3?": "Answer: 6"}
    model, seen = chatting(lambda text: once(text) if "<Sub" in text else CALLS, parts)
    thought = ask(model, Question("?"), depth=depth)
    assert thought.answer == "10"
    assert thought.counts.depth == depth
    assert ("do this part yourself" in seen[1]) is (depth == 0)


def test_an_answer_comes_when_tokens_run_out() -> None:
    model, seen = chatting(lambda text: "42" if text.endswith("Answer:") else "thinking " * 99, {})
    thought = ask(model, Question("?"), max_tokens=50, answer_tokens=20)
    assert thought.answer == "42"
    assert seen[-1].endswith("\nAnswer:")


def test_documents_come_before_the_question() -> None:
    model, _ = chatting(lambda _: "Answer: yes", {})
    question = Question("Is it blue?", documents=(Document("sky", "The sky is blue."),))
    assert ask(model, question).answer == "yes"
    assert prompts(model)[0].index("The sky is blue.") < prompts(model)[0].index("Is it blue?")


def test_the_last_answer_counts() -> None:
    assert stated("Answer: 1\nno, Answer: 2 ") == "2"
    assert stated(" 3 ") == "3"
