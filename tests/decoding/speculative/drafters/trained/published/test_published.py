"""Published drafters, read back: they draft as their authors' code does, and change no text."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.decoding.speculative.drafters.trained.published import formats, slow
from tests.decoding.speculative.rows import SHAPINGS, alone, plain, together
from tests.serving.local.playback import EXACT
from tests.serving.local.tiny import END
from weft.core.ports import ModelRequest, Sampling, complete
from weft.core.values import Completion
from weft.decoding.decoders import parse_decode
from weft.decoding.network.network import Network
from weft.decoding.network.packing import Span
from weft.decoding.speculative.drafters.trained.dflash import DFlashContext, DFlashModel
from weft.decoding.speculative.drafters.trained.eagle import (
    DraftTables,
    DynamicTree,
    EagleModel,
    EagleOptions,
    EagleSequence,
)
from weft.decoding.speculative.drafters.trained.feature_layers import LayerCache
from weft.decoding.speculative.drafters.trained.published.dflash import DFlashParts, read_dflash
from weft.decoding.speculative.drafters.trained.published.eagle3 import read_eagle3
from weft.decoding.speculative.drafters.trained.published.medusa import read_medusa
from weft.decoding.speculative.loop import DecodeLimits
from weft.decoding.speculative.presets import made
from weft.serving.local import LocalModel

TEXT = [3, 61, 4, 61, 65, 9, 62, 6, 65, 35, 8, 97]
PROMPTS = ([5, 9, 5, 9, 5, 9, 17], [40, 41, 42, 43, 40, 41])
LIMITS = DecodeLimits(24, frozenset({END}))
FORMATS = {
    **{f"eagle {name}": ("eagle", make) for name, make in formats.EAGLE3.items()},
    **{f"medusa {name}": ("medusa", make) for name, make in formats.MEDUSA.items()},
    **{f"dflash {name}": ("dflash", make) for name, make in formats.DFLASH.items()},
}


def features(network: Network, taps: tuple[int, ...], rows: int) -> torch.Tensor:
    """[rows, taps * width]: states that enter those layers of the target."""
    network.reset()
    span = Span(0, range(rows), TEXT[:rows], 0, taps=taps)
    hidden = network.forward([span])[0].hidden
    return torch.cat([hidden[tap] for tap in taps], dim=-1)


class Scores(DynamicTree):
    """A chain that keeps the log probabilities of its tokens."""

    def __init__(self) -> None:
        super().__init__(1)
        self.scores: list[float] = []

    def grow(self, tokens: np.ndarray, scores: np.ndarray) -> None:
        self.scores.append(float(scores[0, 0]))
        super().grow(tokens, scores)


@pytest.mark.parametrize("form", formats.EAGLE3)
def test_eagle3_drafts_as_its_authors_code(form: str, network: Network, tmp_path: Path) -> None:
    config, weights = formats.EAGLE3[form](network.vocabulary_size)
    parts = read_eagle3(formats.write(tmp_path / "head", config, weights), network)
    assert parts.taps == (0, 1, 2)
    drafting = EagleModel(
        parts.layer,
        parts.taps,
        parts.head.ids,
        network,
        EagleOptions(depth=4, width=1, nodes=4),
        DraftTables(parts.head, parts.embed),
    )
    own = weights.get("embed_tokens.weight")
    embed = network.embed if own is None else lambda tokens: own[torch.tensor(tokens)]
    for rows in (1, 4, 9):
        read = features(network, parts.taps, rows)
        line = EagleSequence(LayerCache(), Scores(), 4)
        [chain] = drafting.draft([line], [(TEXT[1 : rows + 1], read)])
        expected = slow.eagle3_chain(config, weights, read, TEXT[1 : rows + 1], 4, embed)
        best = [int(np.argmax(row)) for row in expected]
        assert list(chain.tokens) == [row + int(weights["d2t"][row]) for row in best]
        assert isinstance(line.growth, Scores)
        likely = [max(row) for row in expected]
        np.testing.assert_allclose(line.growth.scores, likely, atol=1e-4)


@pytest.mark.parametrize("layers", [0, 1, 2])
def test_medusa_guesses_as_its_authors_code(layers: int, network: Network, tmp_path: Path) -> None:
    config, weights = formats.medusa_published(network.vocabulary_size, layers)
    folder = formats.write(tmp_path / "heads", config, weights, "medusa_lm_head.pt")
    heads = read_medusa(folder, network)
    states = torch.randn(4, network.width)
    found = heads(states)
    assert found.shape == (3, 4, network.vocabulary_size)
    for row, state in enumerate(states):
        torch.testing.assert_close(found[:, row], slow.medusa(config, weights, state))


@pytest.mark.parametrize("make", [formats.medusa_vllm, formats.medusa_shared])
def test_medusa_guesses_as_vllm_computes_it(
    make: Callable[[int], tuple[formats.Config, formats.Weights]], network: Network, tmp_path: Path
) -> None:
    config, weights = make(network.vocabulary_size)
    heads = read_medusa(formats.write(tmp_path / "heads", config, weights), network)
    state = torch.randn(network.width)
    expected = slow.medusa_vllm(config, weights, state)
    torch.testing.assert_close(heads(state[None])[:, 0], expected[:, heads.ids])
    assert len(heads.ids) == config.get("truncated_vocab_size", network.vocabulary_size)


def dflash_model(parts: DFlashParts, network: Network) -> DFlashModel:
    return DFlashModel(parts.net, parts.taps, parts.head.ids, network, parts.head)


@pytest.mark.parametrize("form", formats.DFLASH)
@pytest.mark.parametrize("beside", [False, True])
def test_dflash_fills_a_block_as_its_authors_code(
    form: str, beside: bool, network: Network, tmp_path: Path
) -> None:
    config, weights = formats.DFLASH[form](network.vocabulary_size)
    folder = formats.write(tmp_path / "drafter", config, weights)
    mask = network.embed([11])
    if beside:
        mask = torch.randn(1, network.width)
        torch.save({"mask_token_id": 11, "embedding": mask[0]}, folder / "mask_embedding.pt")
    parts = read_dflash(folder, network)
    assert parts.taps == (1, 2)
    read = features(network, parts.taps, 9)
    block = torch.cat([network.embed([TEXT[9]]), mask.expand(4, -1)])
    ready = slow.dflash(config, weights, read, block)
    own = weights.get("lm_head.weight")
    expected = network.head(ready) if own is None else ready @ own.T
    model = dflash_model(parts, network)
    memories = model.memories()
    for first, last in ((0, 4), (4, 9)):
        [found] = model.look([DFlashContext(memories, read[first:last], TEXT[last])])
    np.testing.assert_allclose(found, expected.numpy(), atol=2e-4, rtol=1e-4)
    drafted = torch.arange(network.vocabulary_size)
    if own is not None:
        drafted = torch.arange(formats.FEW) + weights["d2t"]
    assert model.vocabulary().tolist() == drafted.tolist()


@pytest.mark.parametrize("name", FORMATS)
def test_no_published_drafter_changes_a_text(name: str, network: Network, tmp_path: Path) -> None:
    decoder, make = FORMATS[name]
    folder = formats.write(tmp_path / "drafter", *make(network.vocabulary_size))
    method = made(decoder, network, {"model": str(folder), "num_speculative_tokens": 6})
    for shaping in SHAPINGS:
        expected = [plain(network, prompt, shaping, 5, LIMITS) for prompt in PROMPTS]
        for prompt, text in zip(PROMPTS, expected, strict=True):
            found, decoding = alone(network, prompt, method, shaping, 5, LIMITS)
            assert found == text
            assert decoding.counters.drafted > 0
    each = [plain(network, prompt, SHAPINGS[1], row, LIMITS) for row, prompt in enumerate(PROMPTS)]
    assert together(network, PROMPTS, method, SHAPINGS[1], LIMITS) == each


def test_a_drafter_that_knows_the_model_is_accepted(network: Network, tmp_path: Path) -> None:
    """Heads that are the model's own: where the next tokens are all alike, they are right."""
    config, weights = formats.medusa_published(network.vocabulary_size, 0)
    table = network.head(torch.eye(network.width)).T
    weights = dict.fromkeys(weights, table)
    folder = formats.write(tmp_path / "heads", config, weights)
    heads = read_medusa(folder, network)
    state = torch.randn(network.width)
    for guess in heads(state[None])[:, 0]:
        torch.testing.assert_close(guess, network.head(state[None])[0])


@pytest.mark.parametrize("name", ["eagle SafeAILab", "medusa FasterDecoding", "dflash z-lab"])
def test_a_local_model_takes_one_as_its_decoder(
    name: str, network: Network, tiny_path: Path, tmp_path: Path
) -> None:
    """`decode: NAME:FOLDER`, as in a workflow."""
    decoder, make = FORMATS[name]
    folder = formats.write(tmp_path / "head", *make(network.vocabulary_size))

    async def written(decode: str) -> Completion:
        model = LocalModel(tiny_path, EXACT)
        sampling = Sampling(max_tokens=16, temperature=0.0)
        request = ModelRequest(
            prompt_token_ids=(5, 9, 5, 9, 17), sampling=sampling, decode=parse_decode(decode)
        )
        try:
            return await complete(model, request)
        finally:
            await model.aclose()

    expected = asyncio.run(written("none"))
    found = asyncio.run(written(f"{decoder}:{folder}:4"))
    assert found.token_ids == expected.token_ids
    assert found.speculation is not None
    assert (found.speculation.method, found.speculation.fallback) == (decoder, "")
    assert found.speculation.drafted > 0
