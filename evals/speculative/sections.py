"""The sections of the evaluation of speculative decoders, in the order they are run in."""

from __future__ import annotations

from typing import Final

from evals.sections import Sections

SECTIONS: Final = Sections(
    "speculative",
    (
        "local",
        "spec_bench",
        "assisted",
        "caches",
        "lossless",
        "lossless_networks",
        "overlap",
        "easyspec",
        "choice",
        "auto",
        "sizes",
        "vllm",
    ),
)
