"""Every preset on the oracle: what it writes, in which order, and what that took, to the last slot.

A refactor must leave these traces as they are. WEFT_WRITE_GOLDEN=1 writes them anew.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.decoding.diffusion.lists import SAMPLED, begun
from tests.decoding.diffusion.presets.preset_requirements import plugs_with
from tests.golden_files import assert_golden
from weft.decoding.diffusion.catalogue import NAMES
from weft.decoding.diffusion.denoising import GREEDY, denoise_all
from weft.decoding.diffusion.oracle import vocabulary as words
from weft.decoding.diffusion.oracle.adapter import OracleAdapter
from weft.decoding.diffusion.oracle.languages import random_question
from weft.decoding.diffusion.ports import DecoderConfig

GOLDEN = Path(__file__).parent.parent / "golden"
TASKS = (("sort", 4), ("insert_random", 4), ("words_to_sentence", 5))
SHAPINGS = {"greedy": GREEDY, "sampled": SAMPLED}
ADAPTERS = {"full": OracleAdapter(), "blocks of 4": OracleAdapter(block=4)}


def trace(plugs: DecoderConfig, adapter: OracleAdapter, how: str) -> dict[str, object]:
    """By task: the answer, the order of its slots, and the counters."""
    random = np.random.default_rng(11)
    questions = [random_question(operation, n, random) for operation, n in TASKS]
    rows = [
        begun(question, plugs, seed, SHAPINGS[how], adapter=adapter, room=2)
        for seed, question in enumerate(questions)
    ]
    denoise_all(rows, adapter)
    return {
        str(question): {
            "answer": words.spelled(row.kept.tolist()),
            "finish": row.finish,
            "order": spelled(row.counters.order),
            "passes": dict(sorted(row.counters.passes.items())),
            "tokens": row.counters.tokens,
            "edits": row.counters.edits,
            "remasks": row.counters.remasks,
            "forced": row.counters.forced,
        }
        for question, row in zip(questions, rows, strict=True)
    }


def spelled(order: list[tuple[int, int]]) -> str:
    """The slots of the answer in the order of writing, a bar between steps."""
    steps = range(max(step for step, _ in order) + 1)
    return " | ".join(" ".join(str(s) for at, s in order if at == step) for step in steps)


@pytest.mark.parametrize("name", NAMES)
def test_the_trace_is_golden(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {
        f"{seen}, {how}": trace(
            plugs_with(name, adapter.traits, tmp_path, monkeypatch), adapter, how
        )
        for seen, adapter in ADAPTERS.items()
        for how in SHAPINGS
    }
    assert_golden(GOLDEN / f"{name}.json", json.dumps(found, indent=1) + "\n")
