"""vLLM's sampler, step by step on CPU tensors, against the local loop: same commits, same text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from tests.decoding.diffusion.models import published as p
from tests.decoding.diffusion.models import slow
from tests.serving.vllm.diffusion.runner import Runner, Sampling, Text, row, table
from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.catalogue import decoder_config
from weft.decoding.diffusion.denoising import DenoisingRow, denoise_all
from weft.decoding.diffusion.models import load
from weft.decoding.diffusion.network_adapter import NetworkAdapter
from weft.decoding.diffusion.query import Query
from weft.decoding.network.options import NetworkOptions
from weft.decoding.sampling import CounterRng, SamplingParams
from weft.serving.vllm.diffusion.decoder import ServedCanvas, decoder_request_of

VOCABULARY, MASK, END = 24, 23, 22
PROMPT = [3, 1, 4, 1, 5, 9, 2, 6]
BLOCKS = ModelTraits(VOCABULARY, MASK, frozenset({END}), attention="block_causal", block=4)
SHIFTED = replace(BLOCKS, shifted=True)
FULL = ModelTraits(VOCABULARY, MASK, frozenset({END}))


class Table:
    """The same table of logits as a model of the local loop."""

    def __init__(self, traits: ModelTraits, seed: int, sharp: float = 3.0) -> None:
        self.traits = traits
        self._seed, self._sharp = seed, sharp

    def forward(self, queries: Sequence[Query]) -> list[NDArray[np.float32]]:
        return [self._one(query) for query in queries]

    def forget(self, row: int) -> None:
        """Nothing is kept."""

    def _one(self, query: Query) -> NDArray[np.float32]:
        ids = query.canvas.ids.tolist()
        found = np.empty((len(query.wanted), VOCABULARY), dtype=np.float32)
        for index, slot in enumerate(query.wanted.tolist()):
            at = slot - self.traits.shifted
            found[index] = row(VOCABULARY, self._seed, self.traits, ids, at, self._sharp).numpy()
        found[:, sorted(self.traits.banned)] = -np.inf
        return found


def locally(
    traits: ModelTraits, text: str, seed: int, most: int, extra: dict[str, Any], prompt: list[int]
) -> DenoisingRow:
    asked = decoder_request_of({"weft_decode": text, **extra}, "sequential")
    plugs = decoder_config(asked.decode, traits, dict(asked.options))
    canvas = Canvas(prompt, most, MASK)
    shaping = SamplingParams(asked.temperature)
    denoising = DenoisingRow(canvas, plugs, traits, CounterRng(asked.seed), shaping)
    denoise_all([denoising], Table(traits, seed))
    return denoising


def inside(
    traits: ModelTraits, text: str, seed: int, most: int, extra: dict[str, Any], width: int = 4
) -> tuple[Text, Any]:
    served = ServedCanvas(traits, "sequential", width)
    runner = Runner(served, table(VOCABULARY, seed, traits))
    sampling = Sampling({"weft_decode": text, **extra}, most, all_stop_token_ids={END})
    request = runner.add("a", 2, PROMPT, sampling)
    held = runner.requests[2]
    runner.run()
    return request, held


DECODERS = [
    "sequential",
    "threshold:0.5",
    "threshold:0.9",
    "factor:1.0",
    "entropy_bound:0.5",
    "entropy_threshold:0.5",
    "sdar:0.6",
    "klass",
    "credit",
    "hierarchy",
    "rcr",
    "llada2:0.7",
]


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("traits", [BLOCKS, SHIFTED], ids=["aligned", "shifted"])
@pytest.mark.parametrize("seed", [0, 1])
def test_same_logits_same_commits(decoder: str, traits: ModelTraits, seed: int) -> None:
    """Token for token, in the same order of slots and steps; the prompt ends with a block."""
    here = locally(traits, decoder, seed, 24, {}, PROMPT)
    text, held = inside(traits, decoder, seed, 24, {})
    terminator = [END] if here.finish == "stop" else []
    assert text.emitted == [*here.kept.tolist(), *terminator]
    assert held.row.counters.order == here.counters.order
    assert text.passes - 1 == held.row.counters.forwards  # one pass read the prompt


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_the_pass_that_stores_a_block_writes_on(seed: int) -> None:
    """Fast-dLLM v2: the free first token of a block."""
    here = locally(SHIFTED, "fastdllm_v2:0.6,block=2", seed, 24, {}, PROMPT)
    text, held = inside(SHIFTED, "fastdllm_v2:0.6,block=2", seed, 24, {})
    assert text.emitted[: len(here.kept)] == here.kept.tolist()
    assert held.row.counters.order == here.counters.order


@pytest.mark.parametrize("decoder", ["sequential", "threshold:0.5", "credit"])
def test_same_draws_at_a_temperature(decoder: str) -> None:
    extra = {"weft_temperature": 1.0, "weft_seed": 7}
    here = locally(BLOCKS, decoder, 4, 24, extra, PROMPT)
    text, _ = inside(BLOCKS, decoder, 4, 24, extra)
    assert text.emitted[: len(here.kept)] == here.kept.tolist()
    other, _ = inside(BLOCKS, decoder, 4, 24, extra | {"weft_seed": 8})
    assert other.emitted != text.emitted


@pytest.mark.parametrize("decoder", ["llada", "threshold:0.5", "dream_entropy", "dimple"])
def test_a_canvas_over_all_of_the_answer_is_the_local_one(decoder: str) -> None:
    """Where all slots see each other, and the canvas holds the whole answer."""
    here = locally(FULL, decoder, 5, 16, {}, PROMPT)
    text, held = inside(FULL, decoder, 5, 16, {}, width=16)
    assert text.emitted[: len(here.kept)] == here.kept.tolist()
    assert held.row.counters.order == here.counters.order


def test_a_text_does_not_depend_on_who_shares_its_batch() -> None:
    served = ServedCanvas(SHIFTED, "threshold", 4)
    model = table(VOCABULARY, 9, SHIFTED)
    wishes = ["threshold:0.5", "sequential", "factor:1.0", "fastdllm_v2:0.6,block=2"]
    alone = []
    for place, wish in enumerate(wishes):
        runner = Runner(served, model)
        sampling = Sampling({"weft_decode": wish}, 12 + place, all_stop_token_ids={END})
        text = runner.add(wish, place, PROMPT[: 3 + place], sampling)
        runner.run()
        alone.append(text.emitted)
    runner = Runner(served, model, piece=3)
    together = []
    for place, wish in enumerate(wishes):  # one joins in every other step
        sampling = Sampling({"weft_decode": wish}, 12 + place, all_stop_token_ids={END})
        together.append(runner.add(wish, 5 - place, PROMPT[: 3 + place], sampling))
        runner.step()
        runner.step()
    runner.run()
    assert [text.emitted for text in together] == alone
    assert len({text.passes for text in together}) > 1


def test_a_prompt_that_ends_within_a_block_fills_that_block_first() -> None:
    served = ServedCanvas(BLOCKS, "sequential", 4)
    runner = Runner(served, table(VOCABULARY, 1, BLOCKS))
    text = runner.add("a", 0, PROMPT[:6], Sampling({}, 10, ignore_eos=True))
    sizes = []
    while not text.over:
        before = len(text.emitted)
        runner.step()
        sizes.append(len(text.emitted) - before)
    assert [size for size in sizes if size] == [2, 4, 4]


def test_masks_in_a_prompt_are_no_slots() -> None:
    """DIJA's way in (arXiv 2507.11097): what is open is known by bits, not by ids."""
    forged = [3, MASK, 4, MASK, MASK, 9, 2, MASK]
    runner = Runner(ServedCanvas(BLOCKS, "threshold", 4), table(VOCABULARY, 2, BLOCKS))
    text = runner.add("a", 0, forged, Sampling({}, 12, ignore_eos=True))
    runner.run()
    assert text.ids[: len(forged)] == forged
    assert len(text.emitted) == 12
    assert MASK not in text.emitted


def test_fewer_rows_where_the_context_ends() -> None:
    runner = Runner(ServedCanvas(BLOCKS, "sequential", 4), table(VOCABULARY, 2, BLOCKS), longest=14)
    text = runner.add("a", 0, PROMPT, Sampling({}, 99, all_stop_token_ids=set(), ignore_eos=True))
    runner.run()
    assert len(text.ids) == 14
    assert MASK not in text.emitted


def test_an_ignored_terminator_is_written_over() -> None:
    ends = Sampling({"weft_decode": "threshold:0.1"}, 40, all_stop_token_ids={END})
    on = replace(ends, ignore_eos=True)
    for sampling, longer in ((ends, False), (on, True)):
        runner = Runner(
            ServedCanvas(BLOCKS, "sequential", 4), table(VOCABULARY, 3, BLOCKS, sharp=1.0)
        )
        text = runner.add("a", 0, PROMPT, sampling)
        runner.run()
        assert END in text.emitted
        assert (len(text.emitted) == 40) is longer


def test_a_terminator_that_vllm_does_not_know_is_told_in_its_words() -> None:
    for seed in range(20):
        runner = Runner(ServedCanvas(BLOCKS, "sequential", 4), table(VOCABULARY, seed, BLOCKS))
        sampling = Sampling({}, 40, all_stop_token_ids={21}, eos_token_id=21)
        text = runner.add("a", 0, PROMPT, sampling)
        runner.run()
        assert END not in text.emitted
        if text.emitted[-1] == 21 and len(text.emitted) < 40:
            return
    pytest.fail("no text ended")


@pytest.mark.parametrize(
    "extra",
    [
        {"weft_decode": "nonsense"},
        {"weft_decode": "threshold:7"},
        {"weft_decode": 3},
        {"weft_temperature": -1},
        {"weft_seed": "x"},
        {"weft_colour": 1},
        {"diffusion_max_steps": 3},
        {"weft_decode": "self_speculative"},
        {"weft_decode": "smooth"},
        {"weft_decode": "slowfast"},
        {"weft_decode": "wino"},
        {"weft_decode": "flashdlm"},
    ],
)
def test_a_worker_goes_on_whatever_a_request_says(extra: dict[str, object]) -> None:
    model = table(VOCABULARY, 6, BLOCKS)
    texts = []
    for said in (extra, None):
        runner = Runner(ServedCanvas(BLOCKS, "threshold", 4), model)
        texts.append(runner.add("a", 1, PROMPT, Sampling(said, 12, all_stop_token_ids={END})))
        runner.run()
    assert texts[0].emitted == texts[1].emitted


def test_a_decoder_that_fails_ends_its_request_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    model = table(VOCABULARY, 6, BLOCKS)
    runner = Runner(ServedCanvas(BLOCKS, "threshold", 4), model)
    sampling = Sampling({}, 12, all_stop_token_ids={END})
    first = runner.add("a", 1, PROMPT, sampling)
    second = runner.add("b", 2, PROMPT, sampling)
    runner.step()
    broken = runner.requests[1]
    assert broken is not None

    def fails(*_: object) -> list[int]:
        raise RuntimeError("a bug")

    monkeypatch.setattr(broken.row, "_final", fails)
    runner.run()
    assert first.emitted == [END]
    assert len(second.emitted) > 1


def test_a_place_is_used_again() -> None:
    runner = Runner(ServedCanvas(SHIFTED, "threshold", 4), table(VOCABULARY, 8, SHIFTED))
    sampling = Sampling({}, 9, all_stop_token_ids={END})
    first = runner.add("a", 1, PROMPT, sampling)
    runner.run()
    runner.add("b", 1, PROMPT[:5], sampling)
    runner.run()
    again = runner.add("c", 1, PROMPT, sampling)
    runner.run()
    assert again.emitted == first.emitted


# --- a network: what vLLM computes of it, against the local loop with its own cache


def held_as_read(reference: Any, block: int) -> Any:
    """A model inside vLLM: what was computed for good is read again from its final tokens."""

    def model(text: Text, ids: list[int]) -> torch.Tensor:
        whole = [*text.ids[: text.computed], *ids]
        return slow.by_transformers(reference, whole, block)[text.computed :]

    return model


@pytest.mark.parametrize(
    ("config", "body", "block"), [(p.SDAR, "qwen3", 4), (p.FAST_DLLM, "qwen2", 8)]
)
@pytest.mark.parametrize("decoder", ["threshold:0.3", "factor:1.0", "fastdllm_v2:0.4,block=4"])
def test_a_network_writes_the_same_inside(
    config: dict[str, Any], body: str, block: int, decoder: str, tmp_path: Path
) -> None:
    reference = p.qwen_like(config, body)
    model = load(
        p.write(tmp_path / "model", config, p.weights_of(reference)),
        NetworkOptions(dtype="float32", threads=1),
    )
    traits = model.traits
    prompt = [5, 9, 17, 33, 4, 28, 50, 12]
    asked = decoder_request_of({"weft_decode": decoder}, "sequential")
    plugs = decoder_config(asked.decode, traits, dict(asked.options))
    canvas = Canvas(prompt, 24, p.MASK)
    here = DenoisingRow(canvas, plugs, traits, CounterRng(0), SamplingParams(0.0))
    denoise_all([here], NetworkAdapter(model.network, traits))
    runner = Runner(ServedCanvas(traits, "sequential", block), held_as_read(reference, block))
    sampling = Sampling({"weft_decode": decoder}, 24, all_stop_token_ids=set(traits.end_ids))
    text = runner.add("a", 0, prompt, sampling)
    held = runner.requests[0]
    runner.run()
    assert held is not None
    assert text.emitted[: len(here.kept)] == here.kept.tolist()
    assert held.row.counters.order == here.counters.order
