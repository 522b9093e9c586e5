"""What the evaluation of losslessness counts, and how near a difference was."""

from __future__ import annotations

import asyncio
from math import inf
from pathlib import Path

import pytest

pytest.importorskip("torch")

from evals.speculative import lossless
from evals.speculative.cases.prompt import Prompt
from evals.speculative.margin import Margin
from evals.speculative.systems import System
from tests.serving.local.conftest import tiny_path
from weft.core.values import Lossless, Message
from weft.decoding.network.packing import Span
from weft.decoding.sampling import CounterRng, SamplingParams

__all__ = ["tiny_path"]

PROMPTS = [Prompt(f"p{n}", (Message("user", text),)) for n, text in enumerate(["a a a", "1 2 1 2"])]
LOOKUP = System("lookup", Lossless("lookup"))
BROKEN = System("broken", Lossless("no_such_decoder"))


def test_a_decoder_is_compared_in_every_setting(
    tiny_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lossless, "MODEL", tiny_path)
    asked = [lossless.Asked(prompt, n, 6) for n, prompt in enumerate(PROMPTS * 5)]
    found = asyncio.run(lossless._compare(asked, [LOOKUP, BROKEN], alone=8))
    lookup = {case: found[case, "lookup"] for case in ("greedy_1", "greedy_8", "sampled_8")}
    assert {case: one.answers for case, one in lookup.items()} == {
        "greedy_1": 8,
        "greedy_8": 10,
        "sampled_8": 10,
    }
    assert all(not one.other for one in lookup.values())
    assert ("greedy_1", "autoregressive") not in found
    assert "no_such_decoder" in found["greedy_8", "broken"].error
    margin = Margin(tiny_path)
    rows = [row for key, one in found.items() for row in lossless._rows(*key, one, margin)]
    told = {(row["case"], row["system"], row["metric"]): row["value"] for row in rows}
    assert told["sampled_1", "lookup", "identical_outputs"] == 1.0
    assert told["greedy_8", "lookup", "answers"] == 10
    assert any(row["system"] == "broken" and row["value"] is None for row in rows)


def test_margins_are_those_of_the_plain_model(tiny_path: Path) -> None:
    margin = Margin(tiny_path)
    prompt, seed = PROMPTS[0], 3
    assert margin.between(prompt, SamplingParams(0.0), seed, (1, 2), (1, 2, 3)) == inf
    network, text = margin._model.network, margin._model.encoded(prompt)
    logits = network.forward([Span(0, range(len(text)), text, 1)])[0].logits[-1]
    order = logits.argsort()[::-1]
    best, second = int(order[0]), int(order[1])
    found = margin.between(prompt, SamplingParams(0.0), seed, (best,), (second,))
    assert found == pytest.approx(float(logits[best] - logits[second]), abs=1e-4)
    shaping = SamplingParams(1.0, top_k=4)
    law = shaping.distribution(logits)
    drawn = CounterRng(seed).token(law, 0)
    assert margin.between(prompt, shaping, seed, (drawn,), (int(order[50]),)) == inf
    others = [token for token in range(len(law)) if law[token] and token != drawn]
    assert all(0 < margin.between(prompt, shaping, seed, (drawn,), (t,)) < 1 for t in others)
