"""Diffusion decoders as people write them, and which kind of model a name is for."""

from __future__ import annotations

import pytest

from weft.core.errors import SpecError
from weft.core.values import Lossless, Lossy
from weft.decoding.decoders import parse_decode
from weft.decoding.diffusion import catalogue
from weft.decoding.options import PLAIN, format_decoder
from weft.decoding.speculative.presets import NAMES

READ = {
    "sequential": Lossless("sequential"),
    "threshold": Lossy("threshold"),
    "threshold:0.9": Lossy("threshold", (("threshold", 0.9),)),
    "threshold:threshold=0.9": Lossy("threshold", (("threshold", 0.9),)),
    " threshold , threshold=1": Lossy("threshold", (("threshold", 1),)),
    "adablock,delimiters=13,30": Lossy("adablock", (("delimiters", "13,30"),)),
    "adablock:0.8,delimiters=13 , 30,sure=0.5": Lossy(
        "adablock", (("threshold", 0.8), ("delimiters", "13,30"), ("sure", 0.5))
    ),
    "lookup:8": Lossless("lookup", (("num_speculative_tokens", 8),)),
    "autoregressive": PLAIN,
}
REFUSED = {
    "treshold": ("no decoder 'treshold'", "did you mean 'threshold'"),
    "pipeinfer:8": ("no decoder 'pipeinfer': PipeInfer divides", "take continuous"),
    "lokup": ("no decoder 'lokup'", "did you mean 'lookup'"),
    "threshold:": ("no use for ''", "write threshold:THRESHOLD"),
    "threshold,": ("has no value", "name=value"),
    "adablock,delimiters=13,": ("has no value", "name=value"),
    "adablock,sure=0.3,13": ("'13' has no value", "name=value"),
    "threshold:nope=3": ("no option 'nope'", "threshold"),
    "sequential:3": ("no use for '3'", "write sequential"),
    "": ("no decoder ''", "for diffusion models: sequential"),
}


@pytest.mark.parametrize("text", READ)
def test_a_decoder_is_read(text: str) -> None:
    assert parse_decode(text) == READ[text]
    assert parse_decode(format_decoder(READ[text])) == READ[text]


@pytest.mark.parametrize("text", REFUSED)
def test_a_decoder_that_is_none_is_refused_with_a_remedy(text: str) -> None:
    said, remedy = REFUSED[text]
    with pytest.raises(SpecError) as caught:
        parse_decode(text)
    assert said in caught.value.message
    assert remedy in (caught.value.hint or "").replace("[", "").replace("]", "")


@pytest.mark.parametrize("name", catalogue.NAMES)
def test_every_diffusion_decoder_is_read_again_as_it_is_spelt(name: str) -> None:
    spec = parse_decode(name)
    assert isinstance(spec, Lossless) == catalogue.preset(name).plain
    assert parse_decode(format_decoder(spec)) == spec


def test_no_name_is_of_both_kinds_of_models() -> None:
    assert not set(NAMES) & set(catalogue.NAMES)
    assert catalogue.preset("sequential").plain
