"""The pass in one process: exact where it must be, and grouped as it is described."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from tests.decoding.speculative.drafters.model.layer_parallel.drafting import Reference, exact
from weft.core.errors import CapabilityError
from weft.decoding.speculative.drafters.model.layer_parallel.layered import (
    PIECE_TOKENS,
    DraftJob,
    InProcessTeam,
)

PROMPT = (5, 60, 61, 7, 8, 60, 61)
SIZES = {
    "vocab_size": 90,
    "hidden_size": 48,
    "intermediate_size": 50,
    "num_hidden_layers": 8,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "initializer_range": 0.3,
    "pad_token_id": 1,
}
KINDS = [
    (LlamaConfig, LlamaForCausalLM, {"attention_bias": True, "mlp_bias": True}),
    (MistralConfig, MistralForCausalLM, {"sliding_window": None, "head_dim": 8}),
    (Qwen2Config, Qwen2ForCausalLM, {}),
    (Qwen3Config, Qwen3ForCausalLM, {"head_dim": 8, "tie_word_embeddings": True}),
]


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: kind[1].__name__)
def deep(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of eight layers, biases and all."""
    config, kind, more = request.param
    torch.manual_seed(3)
    model = kind(config(**SIZES, **more))
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(parameter, std=0.3)
    path: Path = tmp_path_factory.mktemp("deep")
    model.save_pretrained(path)
    return path


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_groups_of_one_are_the_plain_model(deep: Path, ranks: int) -> None:
    team = InProcessTeam(replace(exact(deep), group=1, ranks=ranks))
    assert team.draft([DraftJob(0, 0, PROMPT, 12)]) == [Reference(deep).greedy(PROMPT, 12)]


@pytest.mark.parametrize(("ranks", "group"), [(1, 4), (2, 2), (2, 3), (3, 6)])
def test_groups_attend_to_what_enters_them(deep: Path, ranks: int, group: int) -> None:
    layout = replace(exact(deep), group=group, ranks=ranks)
    reference = Reference(deep)
    wanted = reference.grouped(PROMPT, 12, layout.groups(8))
    assert InProcessTeam(layout).draft([DraftJob(0, 0, PROMPT, 12)]) == [wanted]
    assert wanted != reference.greedy(PROMPT, 12), "a group that changes nothing tests nothing"
    assert wanted[0] == reference.greedy(PROMPT, 1)[0], "what follows exact tokens is exact"


def test_a_model_can_be_cut_short(deep: Path) -> None:
    layout = replace(exact(deep), group=1, layers=5)
    assert InProcessTeam(layout).draft([DraftJob(0, 0, PROMPT, 9)]) == [
        Reference(deep, layers=5).greedy(PROMPT, 9)
    ]


@settings(max_examples=15)
@given(
    st.lists(
        st.tuples(st.lists(st.integers(0, 300), min_size=1, max_size=4), st.integers(1, 6)),
        min_size=1,
        max_size=5,
    )
)
def test_committed_tokens_leave_nothing_rough_behind(
    tiny_path: Path, told: list[tuple[list[int], int]]
) -> None:
    """Whatever was drafted before, a draft is that of a model that reads all anew."""
    layout = replace(exact(tiny_path), group=3)
    team = InProcessTeam(layout)
    text: list[int] = []
    for tokens, most in told:
        job = DraftJob(0, len(text), tuple(tokens), most)
        text += tokens
        fresh = InProcessTeam(layout).draft([DraftJob(0, 0, tuple(text), most)])
        assert team.draft([job]) == fresh


def test_rows_draft_what_they_would_alone(tiny_path: Path) -> None:
    layout = exact(tiny_path)
    jobs = [
        DraftJob(2, 0, (5, 6, 7), 5),
        DraftJob(0, 0, (9,), 1),
        DraftJob(3, 0, tuple(range(30, 50)), 7),
        DraftJob(1, 0, (4, 4), 3),
    ]
    alone = [InProcessTeam(layout).draft([job])[0] for job in jobs]
    assert InProcessTeam(layout).draft(jobs) == alone
    assert [len(tokens) for tokens in alone] == [5, 1, 7, 3]


def test_a_long_prompt_is_read_in_pieces(tiny_path: Path) -> None:
    prompt = tuple(3 + n * 7 % 290 for n in range(2 * PIECE_TOKENS + 5))
    team = InProcessTeam(replace(exact(tiny_path), group=1))
    assert team.draft([DraftJob(0, 0, prompt, 3)]) == [Reference(tiny_path).greedy(prompt, 3)]
    assert team.forwards == 3 + 2


def test_a_model_of_another_make_is_refused(tmp_path: Path) -> None:
    GPT2LMHeadModel(GPT2Config(vocab_size=40, n_embd=32, n_layer=2, n_head=4)).save_pretrained(
        tmp_path
    )
    with pytest.raises(CapabilityError, match=r"gpt2 model cannot draft layer-parallel.*llama"):
        InProcessTeam(exact(tmp_path))


def test_more_layers_than_there_are_is_refused(tiny_path: Path) -> None:
    with pytest.raises(CapabilityError, match="has 3 layers, not 4"):
        InProcessTeam(replace(exact(tiny_path), layers=4))
