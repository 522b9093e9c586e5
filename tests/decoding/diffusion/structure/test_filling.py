from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from jsonschema import Draft202012Validator
from numpy.typing import NDArray

from evals.random_schemas import random_schema
from tests.decoding.diffusion.structure.small_vocabularies import END, lexicon
from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.caches.exact import NoCache
from weft.decoding.diffusion.denoising import DenoisingRow, denoise_all
from weft.decoding.diffusion.policies.confidence import ThresholdPolicy
from weft.decoding.diffusion.ports import DecoderConfig
from weft.decoding.diffusion.query import Query
from weft.decoding.diffusion.schedules import FixedBlocks
from weft.decoding.diffusion.stops import FirstTerminator
from weft.decoding.diffusion.structure.compiler import StructureCompiler
from weft.decoding.diffusion.structure.filling import StructureFiller
from weft.decoding.sampling import CounterRng, SamplingParams

WORDS = lexicon()
STRUCTURES = StructureCompiler(WORDS)
MASK = 255 + 1  # the byte 255 is in no text: a mask that is in the vocabulary
TRAITS = (
    ModelTraits(WORDS.size, MASK, frozenset([END])),
    ModelTraits(WORDS.size, MASK, frozenset([END]), attention="block_causal", block=8),
)
GOLDEN = Path(__file__).parent / "golden" / "filling.json"
PLUGS = DecoderConfig(ThresholdPolicy(0.2), FixedBlocks(8), NoCache(), FirstTerminator())


class Noise:
    """Logits that depend on the row and on what the canvas holds, and on nothing else."""

    def __init__(self, traits: ModelTraits) -> None:
        self.traits = traits
        self.passes = 0

    def forward(self, queries: Sequence[Query]) -> list[NDArray[np.float32]]:
        self.passes += 1
        return [self._logits(query) for query in queries]

    def forget(self, row: int) -> None:
        """Nothing is kept."""

    def _logits(self, query: Query) -> NDArray[np.float32]:
        seed = [query.canvas.row, *query.canvas.ids.tolist(), query.canvas.step]
        chance = np.random.default_rng(seed)
        logits = chance.normal(0, 3, (len(query.wanted), self.traits.vocabulary))
        logits[:, MASK] = -np.inf
        return logits.astype(np.float32)


def begun(schema: object, traits: ModelTraits, row: int, room: int = 120) -> DenoisingRow:
    filling = StructureFiller(STRUCTURES.start(room=room, schema=schema), traits)  # type: ignore[arg-type]
    canvas = filling.canvas([40, 41, 42], row=row)
    return DenoisingRow(
        canvas, filling.configure(PLUGS), traits, CounterRng(row), SamplingParams(1.0)
    )


def said(row: DenoisingRow) -> str:
    return b"".join(WORDS.written(int(token)) for token in row.kept).decode()


@pytest.mark.parametrize("traits", TRAITS, ids=["full", "block_causal"])
def test_the_loop_fills_schemas(traits: ModelTraits) -> None:
    for seed in range(12):
        schema = random_schema(random.Random(seed), depth=2)
        row = begun(schema, traits, seed)
        denoise_all([row], Noise(traits))
        assert not list(Draft202012Validator(schema).iter_errors(json.loads(said(row))))
        assert row.canvas.released == row.canvas.length
        assert MASK not in row.kept


SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "ok": {"type": "boolean"},
        "tags": {"type": "array", "items": {"enum": ["x", "yy"]}, "maxItems": 4},
        "note": {"type": "string"},
    },
    "required": ["name", "ok", "tags"],
}


@pytest.mark.parametrize("traits", TRAITS, ids=["full", "block_causal"])
def test_a_row_does_not_depend_on_its_neighbours(traits: ModelTraits) -> None:
    together = [begun(SCHEMA, traits, row) for row in range(3)]
    denoise_all(together, Noise(traits))
    for number, row in enumerate(together):
        alone = begun(SCHEMA, traits, number)
        denoise_all([alone], Noise(traits))
        assert said(alone) == said(row)
        assert alone.counters.forwards == row.counters.forwards


def test_text_costs_no_pass_and_values_share_them() -> None:
    names = [f"a long name of a property, number {n}" for n in range(10)]
    schema = {
        "type": "object",
        "properties": {name: {"type": "boolean"} for name in names},
        "required": names,
    }
    row = begun(schema, TRAITS[0], 0, room=600)
    adapter = Noise(TRAITS[0])
    denoise_all([row], adapter)
    assert len(row.kept) > 300
    assert adapter.passes <= 10


def test_nothing_of_the_prompt_moves() -> None:
    row = begun(SCHEMA, TRAITS[0], 1)
    denoise_all([row], Noise(TRAITS[0]))
    assert row.canvas.ids[:3].tolist() == [40, 41, 42]
    assert row.canvas.first == 3
    with pytest.raises(ValueError, match="part of the prompt"):
        row.canvas.replace(2, 4, [1], [False], [False])


@pytest.mark.parametrize("traits", TRAITS, ids=["full", "block_causal"])
def test_the_trace_is_as_it_was(traits: ModelTraits) -> None:
    row = begun(SCHEMA, traits, 5)
    denoise_all([row], Noise(traits))
    trace = {
        "text": said(row),
        "order": [list(pair) for pair in row.counters.order],
        "forwards": row.counters.forwards,
    }
    golden = json.loads(GOLDEN.read_text("utf-8"))
    assert golden[traits.attention] == trace
