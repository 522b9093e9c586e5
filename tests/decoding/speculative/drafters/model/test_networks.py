"""Real networks: what a draft's cache holds, drafts of a network's own layers, stages of it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

from evals.speculative.pipeinfer.head import Head
from evals.speculative.pipeinfer.pipeline import Pipeline, Threads
from evals.speculative.pipeinfer.pipelined import PipelinedDecoding, PipelineOptions
from evals.speculative.pipeinfer.simulated import Simulated, VirtualClock
from evals.speculative.pipeinfer.stages import cut
from tests.decoding.speculative.rows import alone
from tests.decoding.speculative.rows import plain as written
from tests.serving.local.playback import EXACT
from weft.decoding.network import attention
from weft.decoding.network.network import Network
from weft.decoding.network.packing import Span
from weft.decoding.sampling import CounterRng, SamplingParams
from weft.decoding.speculative.draft import DraftTree
from weft.decoding.speculative.drafters.model.continuous import ConfidenceCutoff
from weft.decoding.speculative.drafters.model.draft_cache import DraftCache
from weft.decoding.speculative.drafters.model.draft_model import (
    DraftChain,
    GreedyChoice,
    grow_chains,
)
from weft.decoding.speculative.loop import DecodeLimits, decode_alone
from weft.decoding.speculative.presets import made, preset

WORDS = 60
PROMPT = (5, 9, 3, 7, 9, 3)
FRESH = 9
"""A slot that no line has."""
SHAPINGS = [SamplingParams(0.0), SamplingParams(0.8, top_p=0.9)]
PRESETS = ["self_draft", "pearl", "llmcad", "continuous"]
WAYS = [
    (name, threads)
    for name in PRESETS
    for threads in (False, True)
    if not threads or "overlap" in preset(name).options
]


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Network:
    """Six heads on two, four layers, float64."""
    attention.register()
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=WORDS,
        hidden_size=24,
        intermediate_size=40,
        num_hidden_layers=4,
        num_attention_heads=6,
        num_key_value_heads=2,
        max_position_embeddings=512,
        initializer_range=0.2,
    )
    folder = tmp_path_factory.mktemp("float64")
    LlamaForCausalLM(config).save_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float64, attn_implementation=attention.NAME
    )
    return Network(model.eval(), EXACT)


@cache
def plain(network: Network, shaping: SamplingParams, seed: int, most: int) -> list[int]:
    text, chance = list(PROMPT), CounterRng(seed)
    for position in range(most):
        read = network.forward([Span(FRESH, range(len(text)), text, 1)])[FRESH]
        text.append(chance.token(shaping.distribution(read.logits[-1]), position))
    return text[len(PROMPT) :]


def difference(network: Network, slot: int, tokens: Sequence[int]) -> float:
    """The largest one between what a slot holds of `tokens` and a reading of them at once."""
    network.forward([Span(FRESH, range(len(tokens)), tuple(tokens), 0)])
    found = [
        (network.column(slot, column) - network.column(FRESH, column)).abs().max()
        for column in range(len(tokens))
    ]
    return float(max(found))


steps = st.lists(
    st.tuples(st.integers(1, 4), st.integers(0, 4), st.integers(0, WORDS - 1)), max_size=6
)


@settings(max_examples=25, deadline=None)
@given(rows=st.lists(steps, min_size=1, max_size=3), trees=st.booleans())
def test_the_cache_holds_what_a_fresh_reading_would(
    network: Network, rows: list[list[tuple[int, int, int]]], trees: bool
) -> None:
    """Drafts of any length, accepted to any depth, several rows in step; trees in between."""
    network.reset()
    cache = DraftCache(network, WORDS)
    lines = [cache.open() for _ in rows]
    for number, line in enumerate(lines):
        line.extend([1 + number, *PROMPT[number:]])
    for now in range(max(map(len, rows))):
        going = [(line, row[now]) for line, row in zip(lines, rows, strict=True) if now < len(row)]
        if trees and going:
            tree = DraftTree((7, 8, 9), (-1, -1, 1))
            cache.read_trees([(line, tree) for line, _ in going])
        chains = [DraftChain(line, GreedyChoice(), most) for line, (most, _, _) in going]
        grow_chains(cache, chains)
        for chain, (_, accepted, bonus) in zip(chains, going_steps(going), strict=True):
            chain.line.extend([*chain.tokens[:accepted], bonus])
        for line in lines:
            if line.cached:
                assert difference(network, line.slot, line.cached) <= 1e-12


def going_steps(
    going: Sequence[tuple[object, tuple[int, int, int]]],
) -> list[tuple[int, int, int]]:
    return [step for _, step in going]


@pytest.mark.parametrize("accepted", range(5))
def test_drafts_after_any_roll_back_are_those_of_a_fresh_cache(
    network: Network, accepted: int
) -> None:
    network.reset()
    cache = DraftCache(network, WORDS)
    line = cache.open()
    line.extend(PROMPT)
    first = DraftChain(line, GreedyChoice(), 4)
    grow_chains(cache, [first])
    text = [*PROMPT, *first.tokens[:accepted], 33]
    line.extend(text[len(PROMPT) :])
    second, fresh = DraftChain(line, GreedyChoice(), 4), DraftChain(cache.open(), GreedyChoice(), 4)
    fresh.line.extend(text)
    grow_chains(cache, [second, fresh])
    assert second.tokens == fresh.tokens
    for a, b in zip(second.chosen, fresh.chosen, strict=True):
        assert a.confidence == pytest.approx(b.confidence, abs=1e-6)


@pytest.mark.parametrize(("name", "threads"), WAYS)
@pytest.mark.parametrize("shaping", SHAPINGS)
def test_the_text_of_plain_decoding(
    network: Network, name: str, shaping: SamplingParams, threads: bool
) -> None:
    options = {"layers": 3}
    if "overlap" in preset(name).options:
        options["overlap"] = threads
    method = made(name, network, options)
    for seed in range(3):
        decoding = decode_alone(
            network, PROMPT, method, shaping, CounterRng(seed), DecodeLimits(24)
        )
        text = [token for step in decoding for token in step]
        assert text == plain(network, shaping, seed, 24)
        assert decoding.speculation.fallback is None
    method.close()


def test_own_layers_are_often_right(network: Network) -> None:
    """Otherwise the tests above would test misses only."""
    method = made("self_draft", network, {"layers": 3, "confidence": 0.0})
    decoding = decode_alone(
        network, PROMPT, method, SamplingParams(0.0), CounterRng(0), DecodeLimits(60)
    )
    list(decoding)
    assert 0.1 < decoding.counters.accepted / decoding.counters.drafted < 1.0


@pytest.mark.parametrize("stages", [1, 2, 4])
@pytest.mark.parametrize("shaping", SHAPINGS)
@pytest.mark.parametrize("threads", [False, True])
def test_a_pipeline_writes_the_text_of_plain_decoding(
    network: Network, stages: int, shaping: SamplingParams, threads: bool
) -> None:
    options = PipelineOptions(batch=3, cutoff=ConfidenceCutoff(0.0, 0.15, 0.0), split=0.1)
    for seed in range(2):
        parts = cut(network, stages)
        pipeline: Pipeline = Threads(parts)
        if not threads:
            pipeline.close()
            pipeline = Simulated(parts, VirtualClock(), lambda number, tokens: 0.1)
        head = Head(PROMPT, shaping, CounterRng(seed), DecodeLimits(24), lanes=3)
        cache = DraftCache(network.share(layers=3), WORDS)
        with closing(PipelinedDecoding(head, pipeline, cache, options)) as decoding:
            text = [token for tokens in decoding for token in tokens]
        assert text == plain(network, shaping, seed, 24)
        for part, low in zip(parts, np.cumsum([0, *(p._part.layers for p in parts)]), strict=False):
            # what a stage holds of the text is what the whole network holds there
            tokens = [*PROMPT, *text]
            settled = tokens[: len(tokens) - len(head.flight) - 1] if not head.flight else PROMPT
            network.forward([Span(FRESH, range(len(settled)), tuple(settled), 0)])
            for column in range(len(settled)):
                whole = network.column(FRESH, column)[low : low + part._part.layers]
                assert (part._part.column(head._lane, column) - whole).abs().max() < 1e-12


def test_more_stages_than_layers_are_refused(network: Network) -> None:
    with pytest.raises(ValueError, match="4 layers in 5 stages"):
        cut(network, 5)


@pytest.mark.model
@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize(
    "shaping", [SHAPINGS[0], pytest.param(SHAPINGS[1], marks=pytest.mark.slow)]
)
def test_a_real_model(smollm2_network: Network, name: str, shaping: SamplingParams) -> None:
    text = [1, 4093, 198, 5195, 314, 260, 5217, 282, 4649, 47]
    limits = DecodeLimits(12)
    method = made(name, smollm2_network, {"layers": 12, "num_speculative_tokens": 3})
    found, decoding = alone(smollm2_network, text, method, shaping, 1, limits)
    assert found == written(smollm2_network, text, shaping, 1, limits)
    assert decoding.speculation.fallback is None
    method.close()
