"""Decoders as people write them, and what is said to those who misspell one."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.core.errors import SpecError
from weft.core.values import Lossless, Lossy
from weft.decoding.options import PLAIN, format_decoder
from weft.decoding.speculative.presets import NAMES, parse_decode

READ = {
    "lookup": Lossless("lookup"),
    "lookup:8": Lossless("lookup", (("num_speculative_tokens", 8),)),
    " lookup:8,which=first ": Lossless(
        "lookup", (("num_speculative_tokens", 8), ("which", "first"))
    ),
    "suffix,tree=true,least=0.2": Lossless("suffix", (("tree", True), ("least", 0.2))),
    "medusa:./heads": Lossless("medusa", (("model", "./heads"),)),
    "medusa_typical": Lossy("medusa_typical"),
    "autoregressive": PLAIN,
    "none": PLAIN,
}
REFUSED = {
    "lokup": "did you mean 'lookup'",
    "": "there are: lookup",
    "lookup:many": "write lookup",
    "lookup:0": "write lookup",
    "lookup:8:9": "write lookup[:TOKENS]",
    "lookup,which": "write name=value",
    "lookup,which=": "write name=value",
    "lookup,window=3": "it has: num_speculative_tokens",
    "autoregressive:3": "",
    "lookup:-1": "write lookup",
    "suffix,num_speculative_tokens=two": "write suffix[:TOKENS]",
}


@pytest.mark.parametrize("text", READ)
def test_a_decoder_is_read(text: str) -> None:
    assert parse_decode(text) == READ[text]


@pytest.mark.parametrize("text", REFUSED)
def test_a_decoder_that_is_none_is_refused_with_a_remedy(text: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_decode(text)
    assert REFUSED[text] in (caught.value.hint or "")


@given(st.integers(1, 256), st.sampled_from(["first", "last"]), st.integers(1, 16))
def test_what_is_spelt_is_read_again(tokens: int, which: str, longest: int) -> None:
    spec = Lossless(
        "lookup", (("num_speculative_tokens", tokens), ("which", which), ("longest", longest))
    )
    assert parse_decode(format_decoder(spec)) == spec


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(SpecError):
        assert parse_decode(text).method in (*NAMES, PLAIN.method)
