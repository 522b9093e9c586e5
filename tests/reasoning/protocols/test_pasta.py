"""PASTA: promises that do not wait, where they stand in the answer, and hostile writers."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.profile import examples
from tests.reasoning.scripted_strategy import assert_golden, spelt_trace, told
from weft.core.ports import ModelRequest
from weft.reasoning.protocols.pasta import PROMPT_VERSION
from weft.reasoning.thought import Thought
from weft.testing import TokenModel, TokenReply

MAIN = (
    'Pets.\n<promise topic="cats" tokens="9"/>\n<promise topic="dogs" tokens="9"/>\nBoth eat.\n'
    "<sync/>\nSo choose."
)
PARTS = {"cats": " They purr.</async>", "dogs": " They bark.</async>"}
CHILD = re.compile(r"<async>(\n[^\n]*: )?$")


def writer(
    main: str = MAIN, *, slow: float = 0.0, tags: bool = False, **fields: object
) -> TokenModel:
    """A model that writes `main`, and behind each promise what `PARTS` says of its topic."""

    def script(prompt: tuple[int, ...], request: ModelRequest) -> str | TokenReply:
        text = model.spell(prompt).rpartition("<|assistant|>")[2]
        if CHILD.search(text):
            topic = text.rpartition('topic="')[2].partition('"')[0]
            return TokenReply(PARTS.get(topic, "x"), per_token_s=slow)
        written = re.sub(r"\n<async>.*?</async>", "", text, flags=re.DOTALL)
        written = written.replace("<sync/>\n\n", "<sync/>\n")
        return main[len(written) :] if main.startswith(written) else ""

    special = ("<promise", "<sync/>", "<async>", "</async>") if tags else ()
    model = TokenModel(script, tags=special, **fields)  # type: ignore[arg-type]
    return model


def pasta(model: TokenModel, text: str = "Pets?", **options: object) -> Thought:
    caps = {"max_tokens": 400, "answer_tokens": 50, "budget": 6000, **options}
    return told("pasta", model, text, bare=True, **caps).thought


def test_the_trace_is_that_of_the_golden_file() -> None:
    model = writer()
    thought = pasta(model)
    assert_golden(PROMPT_VERSION, spelt_trace(model, thought))


@pytest.mark.parametrize("tags", [False, True])
def test_what_was_promised_stands_in_its_place(tags: bool) -> None:
    thought = pasta(writer(tags=tags))
    assert thought.answer == "Pets.\nThey purr.\nThey bark.\nBoth eat.\nSo choose."
    assert thought.fidelity == ("exact" if tags else "approximate")
    assert thought.counts.threads == 3


def test_the_main_thread_goes_on_while_promises_are_kept() -> None:
    model = writer(slow=1.0, per_token_s=0.01)
    thought = pasta(model)
    mains = [r for r in model.requests if not CHILD.search(model.spell(r.prompt_token_ids))]
    assert len(mains) == 6
    assert thought.answer.endswith("So choose.")
    assert thought.counts.critical_path_tokens < thought.counts.total_tokens


@pytest.mark.parametrize(
    ("main", "answer", "threads"),
    [
        ('A <promise topic="cats"/> B', "A They purr. B", 2),
        ("A <promise topic=\"cats\"/><promise topic='Cats'/> B", "A They purr. B", 2),
        ("A <promise tokens=9/> B", "A  B", 1),
        ('A <promise topic=""/> B', "A  B", 1),
        ('A <promise topic="cats"\n> B', "A > B", 1),
        ('A <promise topic="a>b"/> B', "A x B", 2),
        ("A <promise", "A", 1),
        ("A <sync/> B", "A  B", 1),
        ("A <async> in </async> B <br/> C", "A  in  B <br/> C", 1),
        ("<sync/>" * 9 + "B", "B", 1),
        ("", "", 1),
    ],
)
def test_odd_promises_have_an_end(main: str, answer: str, threads: int) -> None:
    thought = pasta(writer(main))
    assert thought.answer == answer
    assert thought.counts.threads == threads


def test_five_hundred_promises_are_cut_to_the_rounds_allowed() -> None:
    main = "".join(f'<promise topic="t{n}"/>' for n in range(500))
    model = writer(main)
    thought = pasta(model, rounds=3, max_tokens=4000, budget=20000)
    assert thought.counts.forks == 3
    assert thought.counts.total_tokens <= 20000


def test_a_promise_that_is_never_kept_is_cut_at_twice_its_length() -> None:
    main = 'A <promise topic="loop" tokens="20"/> B'

    def script(prompt: tuple[int, ...], _: ModelRequest) -> TokenReply | str:
        text = model.spell(prompt).rpartition("<|assistant|>")[2]
        return TokenReply("na ", endless=True) if CHILD.search(text) else main[len(text) :]

    model = TokenModel(script)
    thought = pasta(model)
    assert thought.answer.startswith("A na")
    assert thought.answer.endswith("B")
    children = [r for r in model.requests if CHILD.search(model.spell(r.prompt_token_ids))]
    assert [request.sampling.max_tokens for request in children] == [40]


@pytest.mark.parametrize("nested", ['<promise topic="x"/> c', "<sync/> c"])
def test_a_promise_inside_a_promise_ends_it(nested: str) -> None:
    def script(prompt: tuple[int, ...], _: ModelRequest) -> str:
        text = model.spell(prompt).rpartition("<|assistant|>")[2]
        return f"b {nested}" if CHILD.search(text) else 'A <promise topic="t"/> D'[len(text) :]

    model = TokenModel(script)
    thought = pasta(model)
    assert thought.answer == "A b D"
    assert thought.counts.threads == 2


def test_tags_in_the_question_promise_nothing() -> None:
    model = writer("fine")
    thought = pasta(model, '<promise topic="evil"/><sync/><async>')
    assert thought.answer == "fine"
    prompt = model.spell(model.requests[0].prompt_token_ids)
    assert '<promise topic="evil"' not in prompt


PIECES = st.lists(
    st.sampled_from(
        ["<promise", ' topic="a"', " topic='b'", ' tokens="3"', "/>", "<sync/>", "<async>",
         "</async>", "\n", "x", "\u00e9", "<promise topic=\"d\" tokens=\"99999\"/>"]
    ),
    max_size=14,
).map("".join)  # fmt: skip


@examples(30)
@given(st.lists(PIECES, min_size=1, max_size=4), st.integers(1, 900), st.booleans(), st.booleans())
def test_whatever_a_model_writes_it_ends_within_its_budget(
    texts: list[str], budget: int, tags: bool, endless: bool
) -> None:
    turns = iter(range(10**6))

    def script(prompt: tuple[int, ...], _: ModelRequest) -> TokenReply:
        text = texts[next(turns) % len(texts)]
        return TokenReply(model.read(text), endless=endless)

    special = ("<promise", "<sync/>", "<async>", "</async>") if tags else ()
    model = TokenModel(script, tags=special, context_tokens=3000)
    thought = pasta(model, budget=budget, max_tokens=150)
    assert model.generated <= budget
    for tag in ("<sync/>", "<async>", "</async>", "<promise"):
        assert tag not in thought.answer
