"""The protocols of trained models over a model that writes their tags in any order."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from tests.profile import examples
from tests.reasoning.scripted_strategy import threads, told
from weft.core.errors import ModelUnavailable
from weft.core.ports import ModelRequest
from weft.engine import RunOptions
from weft.reasoning.options import ThinkOptions
from weft.reasoning.protocols.a2r import A2r
from weft.reasoning.protocols.multiverse import Multiverse
from weft.reasoning.protocols.npr import Npr
from weft.reasoning.protocols.parallel_r1 import ParallelR1
from weft.reasoning.protocols.parathinker import ParaThinker
from weft.reasoning.protocols.threadweaver import ThreadWeaver
from weft.reasoning.question import Document, Question
from weft.reasoning.runtime.grammar import ProtocolGrammar
from weft.reasoning.thought import Thought
from weft.testing import TokenModel, TokenReply

PROTOCOLS: dict[str, ProtocolGrammar] = {
    "threadweaver": ThreadWeaver(),
    "parallel-r1": ParallelR1(),
    "multiverse": Multiverse(),
    "npr": Npr(),
    "parathinker": ParaThinker(),
    "a2r": A2r(),
}
BLOCKS = {
    "threadweaver": "<Outlines><Outline>1: a</Outline><Outline>2: b</Outline></Outlines>",
    "parallel-r1": "<Parallel>",
    "multiverse": "<Goal><Outline>1: a</Outline><Outline>2: b</Outline></Goal>",
    "npr": "<guideline><plan>1: a</plan><plan>2: b</plan></guideline>",
    "parathinker": "</think1>",
    "a2r": "</think>",
}


@examples(300)
@given(
    st.sampled_from(sorted(PROTOCOLS)),
    st.integers(0, 2**32),
    st.booleans(),
    st.booleans(),
    st.sampled_from([None, None, 300, 1500]),
    st.builds(
        ThinkOptions,
        width=st.integers(1, 4),
        budget=st.one_of(st.none(), st.integers(1, 2000)),
        depth=st.integers(0, 2),
        rounds=st.integers(1, 3),
        max_tokens=st.integers(1, 200),
        answer_tokens=st.integers(1, 40),
    ),
    st.sampled_from(["", "<think1>", "</Goal>", "</Outlines><|end|>", "1: \u00e9\u4e2d"]),
)
def test_whatever_a_model_writes(
    name: str,
    seed: int,
    special: bool,
    placement: bool,
    window: int | None,
    caps: ThinkOptions,
    question: str,
) -> None:
    grammar = PROTOCOLS[name]
    marks = grammar.tags or ("</think>",)
    fragments = [*[BLOCKS[name]] * 3, *marks, "1: x\n", "words ", "\u4e2d", "<|end|>"]

    def script(ids: tuple[int, ...], request: ModelRequest) -> TokenReply:
        draw = random.Random(hash((seed, ids, request.sampling.seed)))
        text = "".join(draw.choice(fragments) for _ in range(draw.randrange(5)))
        if draw.random() < 0.05:
            return TokenReply(text, error=ModelUnavailable("down"))
        return TokenReply(text, endless=draw.random() < 0.1, per_token_s=draw.choice([0.0, 0.1]))

    tags = (*grammar.tags, *grammar.also) if special else ()
    model = TokenModel(script, tags=tags, placement=placement, context_tokens=window)
    over = told(
        name,
        model,
        Question(question, question, (Document(question, question),)),
        run=RunOptions(limits={"tokens": 2}),
        **{key: getattr(caps, key) for key in ("width", "budget", "depth", "rounds")},
        **{key: getattr(caps, key) for key in ("max_tokens", "answer_tokens")},
    )
    assert model.running == 0
    assert model.generated <= caps.cap
    if special and model.requests:
        first = model.requests[0].prompt_token_ids
        asked = first[: first.index(model.read("<|assistant|>")[0])]
        assert not {model.read(tag)[0] for tag in tags}.intersection(asked)
    value = over.result.outcomes[next(iter(over.result.outcomes))].value
    if isinstance(value, Thought) and value.tree is not None:
        assert value.counts.total_tokens == model.generated
        for thread in threads(value.tree):
            assert "bug in weft" not in thread.reason
            assert "NodeFailed" not in thread.reason
            for fork in thread.forks:
                keys = [child.key for child in fork.children]
                assert len(set(keys)) == len(keys) <= caps.width
        return
    assert over.error.startswith("ReasoningError"), over.error
