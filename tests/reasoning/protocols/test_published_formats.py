"""Models trained with plain-text tags: their own format, and none of weft's prompts."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from tests.profile import examples
from weft.core.ports import ModelRequest
from weft.errors import BuildError, ReasoningError
from weft.reasoning.protocols.sprint_stages import STOPS
from weft.reasoning.strategies import check_options
from weft.testing import TokenModel, TokenReply

PUBLISHED = {"format": "published"}
SYSTEM = "The publisher's prompt, which shows <Plan_p>, <promise and <Parallel> as they are."
OUTLINES = "<Parallel>\n<Outlines>\n<Outline>1: a</Outline>\n<Outline>2: b</Outline>\n</Outlines>"
PETS = 'Pets: <promise topic="cats" tokens="9"/> and <sync/>So choose.'
PLAN = "<Plan_1>\n<prompt_1.1>7 * 8</prompt_1.1>\n<prompt_1.2>5 * 11</prompt_1.2>\n</Plan_1>"


def pasta(text: str) -> str:
    if text.endswith("<async>"):
        return " They purr.</async>"
    written = re.sub(r"\n<async>.*?</async>\n?", "", text, flags=re.DOTALL)
    return PETS[len(written) :]


def threadweaver(text: str) -> str:
    if re.search(r"<Thread>\n\d:$", text):
        return " done</Thread>"
    return "</Parallel>\nBoth: 42" if text.endswith("</Thread>\n") else OUTLINES


def sprint(text: str) -> str:
    said = {
        "<execution_1.1>\n": "56\n</execution_1.1>",
        "<execution_1.2>\n": "55\n</execution_1.2>",
    }
    said["</Execution_1>\n"] = "<Final_answer>\nThe first.\n</Final_answer>"
    return next((words for end, words in said.items() if text.endswith(end)), PLAN)


WRITERS = {"pasta": pasta, "threadweaver": threadweaver, "sprint": sprint}


def writer(strategy: str) -> TokenModel:
    """A model that continues its text as trained, and knows no special token."""

    def script(prompt: tuple[int, ...], _: ModelRequest) -> str:
        return WRITERS[strategy](model.spell(prompt).rpartition("<|assistant|>")[2])

    model = TokenModel(script)
    return model


def think(strategy: str, model: TokenModel, **options: object) -> weft.Thought:
    given = {"max_tokens": 600, "answer_tokens": 50, "budget": 6000, **options}
    settings = weft.ThinkOptions(settings=PUBLISHED, **given)  # type: ignore[arg-type]
    return weft.think_sync(
        "Which is more?", strategy=strategy, model=model, system=SYSTEM, options=settings
    )


@pytest.mark.parametrize("strategy", WRITERS)
def test_the_format_is_followed_and_nothing_is_prompted(strategy: str) -> None:
    model = writer(strategy)
    thought = think(strategy, model)
    assert (thought.fidelity, thought.lost) == ("exact", "")
    assert thought.counts.forks == 1
    first = model.spell(model.requests[0].prompt_token_ids)
    system = first.partition("<|system|>")[2].partition("<|end|>")[0]
    assert system == SYSTEM


@pytest.mark.parametrize(
    ("strategy", "answer"),
    [("pasta", "Pets: They purr. and So choose."), ("threadweaver", "Both: 42")],
)
def test_the_answer_is_read_from_plain_text(strategy: str, answer: str) -> None:
    assert " ".join(think(strategy, writer(strategy)).answer.split()) == answer


def test_without_the_setting_plain_text_is_prompted() -> None:
    model = writer("threadweaver")
    thought = weft.think_sync("Which?", strategy="threadweaver", model=model)
    assert thought.fidelity == "approximate"


def test_an_executor_reads_the_plan_up_to_its_own_task() -> None:
    model = writer("sprint")
    thought = think("sprint", model)
    assert thought.answer == "The first."
    prompts = [model.spell(request.prompt_token_ids) for request in model.requests]
    texts = [prompt.rpartition("<|assistant|>")[2] for prompt in prompts]
    task = "<Plan_1>\n<prompt_1.1>7 * 8</prompt_1.1>"
    assert texts[1] == f"{task}\n<Execution_1>\n<execution_1.1>\n"
    both = f"{task}\n<prompt_1.2>5 * 11</prompt_1.2>"
    assert texts[2] == f"{both}\n<Execution_1>\n<execution_1.2>\n"
    assert texts[3] == (
        f"{both}\n</Plan_1>\n<Execution_1>\n<execution_1.1>\n56\n</execution_1.1>\n"
        "<execution_1.2>\n55\n</execution_1.2>\n</Execution_1>\n"
    )
    assert {request.sampling.stop for request in model.requests} == {STOPS}
    assert "<Question>\nWhich is more?\n</Question>" in prompts[0]


def test_after_the_last_stage_the_answer_is_asked_for() -> None:
    plan = "<Plan_1><prompt_1.1>x</prompt_1.1></Plan_1>"

    def script(prompt: tuple[int, ...], _: ModelRequest) -> str:
        text = model.spell(prompt)
        if text.endswith("<Final_answer>\n"):
            return "42\n</Final_answer>"
        return "y</execution_1.1>" if text.endswith("<execution_1.1>\n") else plan

    model = TokenModel(script)
    thought = think("sprint", model, rounds=2)
    assert thought.answer == "42"
    assert thought.counts.forks == 2


@pytest.mark.parametrize("strategy", ["pasta", "threadweaver", "sprint", "npr", "multiverse"])
def test_an_unknown_format_is_refused_without_a_model(strategy: str) -> None:
    check_options(strategy, weft.ThinkOptions(settings=PUBLISHED))
    with pytest.raises(BuildError, match="has no format 'own'"):
        check_options(strategy, weft.ThinkOptions(settings={"format": "own"}))


_PIECES = (
    *("<Plan_1>", "</Plan_1>", "<prompt_1.1>", "</prompt_1.1>", "</prompt_1.2>", "</Plan_"),
    *("<Execution_1>", "</Execution_1>", "</execution_1.1>", "<Final_answer>", "</Final_answer>"),
    *("<promise", ' topic="x"/>', "<sync/>", "<Outlines>", "</Outlines>", "1: a", "42", "\n"),
)


@examples(60)
@given(
    strategy=st.sampled_from(sorted(WRITERS)),
    said=st.lists(st.lists(st.sampled_from(_PIECES), max_size=8).map("".join), min_size=1),
)
def test_whatever_it_writes_there_is_an_end(strategy: str, said: list[str]) -> None:
    replies = iter(said)
    model = TokenModel(lambda *_: TokenReply(next(replies, "42")))
    try:
        thought = think(strategy, model, rounds=2, max_tokens=200, budget=1500)
    except ReasoningError:
        return
    assert thought.answer.strip()
    assert model.generated <= 1500
    assert model.running == 0
