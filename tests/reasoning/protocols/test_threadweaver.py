"""ThreadWeaver: outlines, threads, and the context that is exactly the published one."""

from __future__ import annotations

import pytest

from tests.reasoning.protocols.protocol_trace import assert_golden, model_of, thought_of
from weft.reasoning.protocols.threadweaver import ThreadWeaver
from weft.reasoning.question import Question
from weft.testing import TokenReply

TAGS = (*ThreadWeaver.tags, "<think>", "</think>")
OUTLINES = """\
<Parallel>
<Outlines>
<Outline>1: the first sum</Outline>
<Outline>2: the second sum</Outline>
</Outlines>"""
ANSWERS: dict[str, str | TokenReply] = {
    "<|assistant|>": f"<think>Two sums.\n{OUTLINES}",
    "\n<Thread>\n1:": " 4 + 5 = 9</Thread>",
    "\n<Thread>\n2:": " 7 + 1 = 8</Thread>",
    "8</Thread>\n": "</Parallel>\nDone.</think>9 and 8",
}


@pytest.mark.parametrize("mode", ["tags", "prompted"])
def test_the_trace_is_golden(mode: str) -> None:
    model = model_of(ANSWERS, TAGS if mode == "tags" else ())
    thought = thought_of("threadweaver", model, Question("Add up.", system="Be brief."))
    assert thought.answer == "9 and 8"
    assert_golden(f"threadweaver-{mode}", model, thought)


def test_siblings_share_their_prompt_and_the_join_keeps_the_parents() -> None:
    model = model_of(ANSWERS, TAGS)
    thought_of("threadweaver", model)
    root, first, second, joined = (request.prompt_token_ids for request in model.requests)
    head = model.read(OUTLINES)
    assert first[: len(root)] == second[: len(root)] == root
    assert first[-4:-3] == model.read("<Thread>")
    shared = first[: -len("\n1:") - 1]
    assert shared == second[: len(shared)]
    assert shared[-len(head) - 1 : -1] == head
    assert joined[: len(first)] == first, "the first thread is read again from the cache"


def test_a_thread_that_never_ends_is_closed_and_so_is_the_block() -> None:
    answers = dict(ANSWERS)
    answers["\n<Thread>\n1:"] = TokenReply(" 1", endless=True)
    answers["\n<Thread>\n2:"] = " cut"
    answers["</Parallel>\n"] = "so 8</think>8"
    model = model_of(answers, TAGS)
    thought = thought_of("threadweaver", model, max_tokens=200, budget=400)
    assert thought.tree is not None
    one, two = thought.tree.forks[0].children
    assert (one.reason, two.reason) == ("cut off at its length", "")
    assert one.text.endswith("1\n</Thread>")
    assert two.text == "\n<Thread>\n2: cut\n</Thread>"
    assert model.spell(model.requests[-1].prompt_token_ids).endswith(
        "<Thread>\n2: cut\n</Thread>\n</Parallel>\n"
    )
    assert thought.answer == "8"


def test_an_answer_within_the_thought_is_asked_for_behind_it() -> None:
    answers = {
        **ANSWERS,
        "8</Thread>\n": "</Parallel>\nso 9 and 8",
        "</think>\n\nFinal answer: ": "17",
    }
    model = model_of(answers, TAGS)
    thought = thought_of("threadweaver", model)
    assert thought.answer == "17"
    assert thought.why == "it ended within its thought"


@pytest.mark.parametrize(
    ("written", "keys"),
    [
        ("<Outline>1: a</Outline><Outline>1: b</Outline><Outline>2: c</Outline>", ["1", "2"]),
        ("<Outline>3: a</Outline><Outline>1.2: b</Outline>", ["3", "1.2"]),
        ("1: a\n2) b\n3. c", ["1", "2", "3"]),
        ("<Outline>no number</Outline><Outline>7: x</Outline>", ["7"]),
    ],
)
def test_outlines_as_models_write_them(written: str, keys: list[str]) -> None:
    def answers(text: str) -> str:
        if text.endswith("<|assistant|>"):
            return f"<Outlines><Outline>9: old</Outline><Outlines>{written}</Outlines>"
        return "</Thread>" if "<Thread>" in text[-20:] and text.endswith(":") else "the end"

    thought = thought_of("threadweaver", model_of(answers, TAGS))
    assert thought.tree is not None
    assert [child.key for child in thought.tree.forks[0].children] == keys


def test_without_outlines_it_goes_on_alone() -> None:
    answers = {"<|assistant|>": "<Outlines></Outlines>", "</Outlines>": " nothing to split"}
    thought = thought_of("threadweaver", model_of(answers, TAGS))
    assert thought.counts.forks == 0
    assert thought.answer == "nothing to split"


def test_a_fork_that_is_refused_closes_its_block() -> None:
    answers = {**ANSWERS, "</Parallel>\n": "alone: 9 and 8"}
    thought = thought_of("threadweaver", model_of(answers, TAGS), depth=0)
    assert thought.counts.forks == 0
    assert thought.answer == "alone: 9 and 8"


def test_it_is_made_to_answer_with_its_blocks_closed() -> None:
    def answers(text: str) -> str | TokenReply:
        if text.endswith("Final answer: "):
            return "17"
        return TokenReply("<think><Parallel>", endless=True)

    model = model_of(answers, TAGS)
    thought = thought_of("threadweaver", model, max_tokens=10)
    prompt = model.spell(model.requests[-1].prompt_token_ids)
    assert prompt.endswith("\n</Parallel>" * 9 + "\n</think>\n\nFinal answer: ")
    assert (thought.answer, thought.why) == ("17", "its tokens are spent")


def test_the_first_block_can_be_opened_for_a_model_that_is_told() -> None:
    lines = "1: the first sum\n2: the second sum\n</Outlines>"
    model = model_of({**ANSWERS, "<Parallel>\n<Outlines>\n": lines})
    thought = thought_of("threadweaver", model, settings={"opened": True})
    assert [child.key for child in thought.tree.forks[0].children] == ["1", "2"]  # type: ignore[union-attr]
    assert thought.answer == "9 and 8"


def test_a_model_that_is_told_may_forget_to_close_its_outlines() -> None:
    answers = {
        **ANSWERS,
        "<|assistant|>": "<Parallel><Outlines><Outline>1: a</Outline><Outline>2: b</Parallel>no",
        "8</Thread>\n": "</Parallel>9 and 8",
    }
    model = model_of(answers)
    thought = thought_of("threadweaver", model)
    assert thought.counts.forks == 1
    forked = model.spell(model.requests[1].prompt_token_ids)
    assert forked.endswith("<Outline>2: b</Outlines>\n<Thread>\n1:")
    assert thought.answer == "9 and 8"


def test_a_thread_that_goes_on_with_the_next_one_is_cut_off_there() -> None:
    answers = {**ANSWERS, "\n<Thread>\n1:": " 4 + 5 = 9\n<Thread>\n2: mine too</Thread>"}
    model = model_of(answers)
    thought_of("threadweaver", model)
    joined = model.spell(model.requests[-1].prompt_token_ids)
    assert joined.endswith("<Thread>\n1: 4 + 5 = 9\n\n</Thread><Thread>\n2: 7 + 1 = 8</Thread>\n")
    trained = model_of(answers, TAGS)
    thought_of("threadweaver", trained)
    assert "mine too" in trained.spell(trained.requests[-1].prompt_token_ids)
