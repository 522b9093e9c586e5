"""Fused layers compute what transformers' do, in the precision that was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, Qwen2Config, Qwen2ForCausalLM

from tests.serving.local.playback import EXACT
from weft.core.errors import CapabilityError
from weft.decoding.network import quantization
from weft.decoding.network.fused_decoder import FusedLayer
from weft.decoding.network.network import Network
from weft.decoding.network.options import NetworkOptions, Quantization
from weft.decoding.network.packing import Span
from weft.decoding.network.quantization import (
    Int4Linear,
    Int4LinearOfFloat32,
    Int8Linear,
    PackedLinear,
    UnpackedLinear,
    quantize,
)
from weft.decoding.speculative.pass_costs import _name

INT8 = pytest.param(
    "int8", marks=pytest.mark.skipif(not quantization._has_vnni(), reason="this CPU has no VNNI")
)
TOKENS = [5, 9, 13, 200, 3, 77, 31, 8]


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with biases and with shapes that have kernels for few bits."""
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=320,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=1024,
        initializer_range=0.1,
        use_sliding_window=False,
    )
    model = Qwen2ForCausalLM(config)
    for name, weight in model.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(weight)
    path = tmp_path_factory.mktemp("wide")
    model.to(torch.bfloat16).save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def four_bits(wide: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with weights on 16 levels in each group, as a file of 4 bits has."""
    model = AutoModelForCausalLM.from_pretrained(wide, dtype=torch.bfloat16)
    with torch.no_grad():
        for module in model.model.layers.modules():
            if type(module) is torch.nn.Linear:
                levels, pairs = quantize(module.weight)
                scales = pairs.float().transpose(0, 1)
                grouped = levels.reshape(*scales.shape[:2], -1) - 8
                values = grouped * scales[..., :1] + scales[..., 1:]
                module.weight.copy_(values.reshape(module.weight.shape))
    path = tmp_path_factory.mktemp("four")
    model.save_pretrained(path)
    return path


def layers(network: Network) -> list[FusedLayer]:
    assert network._decoder is not None
    return list(network._decoder)


def read(
    network: Network,
    sizes: tuple[int, ...],
    tokens: Sequence[int] = TOKENS,
    *,
    prompt: bool = False,
) -> torch.Tensor:
    """The logits of all of `tokens`, read in passes of so many."""
    network.reset()
    found, first = [], 0
    for size in sizes:
        columns = range(first, first + size)
        span = Span(0, columns, tokens[first : first + size], size, prompt=prompt)
        found.append(torch.from_numpy(network.forward([span])[0].logits.copy()))
        first += size
    return torch.cat(found)


@pytest.mark.parametrize("name", ["tiny_path", "wide"])
def test_logits_are_those_of_transformers(name: str, request: pytest.FixtureRequest) -> None:
    path: Path = request.getfixturevalue(name)
    model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)
    with torch.inference_mode():
        expected = model(torch.tensor([TOKENS])).logits[0]
    network = Network.load(path, EXACT)
    assert all(isinstance(layer, FusedLayer) for layer in layers(network))
    torch.testing.assert_close(read(network, (3, 1, 4)), expected, rtol=1e-4, atol=1e-4)


def test_without_the_operators_the_layers_stay_as_they_are(
    wide: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fused = read(Network.load(wide, EXACT), (8,))
    monkeypatch.setattr(quantization, "can_pack", lambda *_: False)
    network = Network.load(wide, EXACT)
    assert not any(isinstance(layer, FusedLayer) for layer in layers(network))
    torch.testing.assert_close(read(network, (8,)), fused, rtol=1e-4, atol=1e-4)
    with pytest.raises(CapabilityError, match="int4"):
        Network.load(wide, NetworkOptions(dtype="bfloat16", quantization="int4", threads=1))


def test_where_bfloat16_cannot_be_packed_it_is_read_as_it_is(
    wide: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = read(Network.load(wide, EXACT), (8,))
    monkeypatch.setattr(quantization, "can_pack", lambda dtype=None: dtype != torch.bfloat16)
    network = Network.load(wide, NetworkOptions(dtype="bfloat16", threads=1))
    assert {type(layer.linears.down) for layer in layers(network)} == {UnpackedLinear}
    torch.testing.assert_close(read(network, (8,)), exact, rtol=0.1, atol=0.2)


def test_auto_goes_by_the_weights(wide: Path, four_bits: Path) -> None:
    auto = NetworkOptions(dtype="bfloat16", threads=1)
    kinds = {
        path: {type(layer.linears.down) for layer in layers(Network.load(path, auto))}
        for path in (wide, four_bits)
    }
    assert Int4Linear not in kinds[wide]
    assert kinds[four_bits] == {Int4Linear}
    few = Network.load(four_bits, auto)
    whole = Network.load(four_bits, replace(auto, quantization="none"))
    assert (few.quantization, few.share(2).quantization, whole.quantization) == (
        "int4",
        "int4",
        "none",
    )
    assert _name(few) != _name(whole)  # what their passes take is remembered apart
    assert Int4Linear not in {type(layer.linears.down) for layer in layers(whole)}
    exact = Network.load(four_bits, replace(auto, dtype="float32"))
    assert Int4Linear not in {type(layer.linears.down) for layer in layers(exact)}


@pytest.mark.parametrize("quantization", ["int4", INT8])
@pytest.mark.parametrize("sizes", [(8,), (1, 7), (5, 3), (2, 2, 4)])
def test_few_bits_give_a_token_the_same_logits_in_any_pass(
    four_bits: Path, sizes: tuple[int, ...], quantization: Quantization
) -> None:
    options = NetworkOptions(dtype="bfloat16", quantization=quantization, threads=1)
    network = Network.load(four_bits, options)
    assert torch.equal(read(network, sizes), read(network, (1,) * 8))


def test_a_machine_without_bfloat16_computes_in_float32_with_weights_of_four_bits(
    four_bits: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", dict)
    network = Network.load(four_bits, NetworkOptions(threads=1))
    assert network.quantization == "int4"
    assert network.reads_prompts_apart
    (kinds,) = {(type(x.linears.down), type(x.prompt_linears.down)) for x in layers(network)}
    assert kinds == (Int4LinearOfFloat32, PackedLinear)
    exact = Network.load(four_bits, NetworkOptions(dtype="float32", threads=1))
    assert exact.quantization == "none"
    whole = read(network, (8,))
    for prompt in (False, True):
        one = read(network, (1,) * 8, prompt=prompt)
        assert torch.equal(read(network, (3, 5), prompt=prompt), one)
        torch.testing.assert_close(one, read(exact, (8,)), rtol=0.05, atol=0.05)
    assert not torch.equal(whole, read(network, (8,), prompt=True))


def test_rows_of_a_batch_have_the_logits_they_have_alone(four_bits: Path) -> None:
    network = Network.load(four_bits, NetworkOptions(dtype="bfloat16", threads=1))
    alone = read(network, (8,))
    network.reset()
    for slot in range(4):
        network.forward([Span(slot, range(slot + 3), TOKENS[: slot + 3], 0)])
    spans = [Span(s, (s + 3,), TOKENS[s + 3 : s + 4], 1) for s in range(4)]
    for slot, reading in network.forward(spans).items():
        assert torch.equal(torch.from_numpy(reading.logits[0]), alone[slot + 3])


NEEDS_VNNI = pytest.mark.skipif(not quantization._has_vnni(), reason="this CPU has no VNNI")


@NEEDS_VNNI
def test_prompts_are_read_in_eight_bits_in_passes_of_their_own(four_bits: Path) -> None:
    options = NetworkOptions(dtype="bfloat16", threads=1)
    network = Network.load(four_bits, options)
    assert network.reads_prompts_apart
    assert not Network.load(four_bits, replace(options, quantization="int8")).reads_prompts_apart
    assert not Network.load(four_bits, replace(options, quantization="none")).reads_prompts_apart
    asked, answer = read(network, (8,), prompt=True), read(network, (8,))
    assert not torch.equal(asked, answer)
    torch.testing.assert_close(asked, answer, rtol=0.1, atol=0.2)
    network.reset()
    spans = [Span(slot, range(8), TOKENS, 8, prompt=slot == 1) for slot in range(2)]
    found = network.forward(spans)
    assert torch.equal(torch.from_numpy(found[0].logits), answer)
    assert torch.equal(torch.from_numpy(found[1].logits), asked)


@NEEDS_VNNI
@pytest.mark.parametrize("sizes", [(1, 7), (5, 3), (1,) * 8])
def test_pieces_of_a_prompt_have_the_logits_of_the_whole(
    four_bits: Path, sizes: tuple[int, ...]
) -> None:
    network = Network.load(four_bits, NetworkOptions(dtype="bfloat16", threads=1))
    assert torch.equal(read(network, sizes, prompt=True), read(network, (8,), prompt=True))


@pytest.mark.model
@pytest.mark.parametrize("sizes", [(256, 64), (7, 256, 57), (250, 1, 1, 68)])
def test_pieces_of_a_long_prompt_have_the_logits_of_the_whole(
    smollm2: Path, sizes: tuple[int, ...]
) -> None:
    network = Network.load(smollm2, NetworkOptions(threads=1))
    tokens = range(1000, 1320)
    whole = read(network, (320,), tokens, prompt=True)
    assert torch.equal(read(network, sizes, tokens, prompt=True), whole)


def test_what_cannot_be_had_is_refused(tiny_path: Path, wide: Path) -> None:
    with pytest.raises(ValueError, match="quantization is one of"):
        NetworkOptions(quantization="int3")  # type: ignore[arg-type]
    with pytest.raises(CapabilityError, match=r"VNNI|bfloat16"):
        Network.load(wide, NetworkOptions(dtype="float32", quantization="int8"))
    with pytest.raises(CapabilityError, match="multiples"):
        Network.load(tiny_path, NetworkOptions(dtype="bfloat16", quantization="int4"))


@pytest.mark.model
@pytest.mark.parametrize("quantization", ["auto", INT8])
def test_the_embedded_model_gives_a_token_the_same_logits_in_any_pass(
    smollm2: Path, quantization: Quantization
) -> None:
    network = Network.load(smollm2, NetworkOptions(quantization=quantization, threads=1))
    kept = Int8Linear if quantization == "int8" else Int4Linear
    assert all(isinstance(layer.linears.down, kept) for layer in layers(network))
    assert torch.equal(read(network, (1,) * 8), read(network, (8,)))


def test_tables_and_views_that_grow_change_no_bit(four_bits: Path) -> None:
    growing = Network.load(four_bits, NetworkOptions(dtype="bfloat16"))
    ready = Network.load(four_bits, NetworkOptions(dtype="bfloat16"))
    far = [column % 300 for column in range(600)]
    ready.forward([Span(0, range(len(far)), far, 0, prompt=True)])
    for column, token in enumerate(far[:300]):
        span = Span(0, (column,), (token,), wants_logits=1)
        found, expected = growing.forward([span])[0], ready.forward([span])[0]
        assert (found.logits == expected.logits).all(), column
