"""JSON that is filled in, beside JSON that a grammar-constrained autoregressive model writes.

`random`: random schemas and a model that says nothing but noise, since validity must not depend on
a model. `skeleton`: schemas whose documents are mostly keys: forwards for a document, of noise with
so many slots a pass (`filled_1`, `filled_4`, `filled_all`), of noise under the grammar with its
forced tokens free (`grammar`), and with a pass for each token (`grammar, each token`), as servers
mask logits. `forms`, `documents`: what a short text tells as JSON, exactly, by trained models: ten
keys of short values, and two to four of any. A forward is a pass of the model, the one over the
prompt included; `tokens` are those of the answer, which is what a pass for each token takes.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from evals.engine.rows import Row
from evals.planning.effort import Effort, Skipped
from evals.random_schemas import Schema, random_schema
from evals.reasoning.report import Target
from weft.core.errors import ModelError, ModelNotFound
from weft.core.ports import ModelRequest, Sampling, complete
from weft.core.values import AUTOREGRESSIVE, DecodeSpec, JsonSchema, Lossy, Message
from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.caches.exact import NoCache
from weft.decoding.diffusion.denoising import DenoisingRow, denoise_all
from weft.decoding.diffusion.policies.confidence import ThresholdPolicy
from weft.decoding.diffusion.policies.fixed_pace import EveryStep
from weft.decoding.diffusion.ports import DecoderConfig
from weft.decoding.diffusion.query import Query
from weft.decoding.diffusion.schedules import FixedBlocks
from weft.decoding.diffusion.stops import FirstTerminator
from weft.decoding.diffusion.structure.compiler import StructureCompiler
from weft.decoding.diffusion.structure.filling import StructureFiller
from weft.decoding.diffusion.structure.languages.token_automaton import TokenVocabulary
from weft.decoding.sampling import CounterRng, SamplingParams
from weft.serving.local import LocalModel, LocalOptions
from weft.serving.local.grammar import GrammarCompiler
from weft.serving.local.vocabulary import Vocabulary
from weft.serving.weights import locate
from weft.training.diffusion.block.documents import GeneratedDocument, random_document, random_form
from weft.validation import read_answer

_AUTOREGRESSIVE: Final = "smollm2-135m-instruct"
_BLOCK: Final = "smollm2-block"
_SURE: Final = "smollm2-block, surest"
_SEVERAL: Final[Mapping[str, DecodeSpec]] = {
    _BLOCK: AUTOREGRESSIVE,
    _SURE: Lossy("threshold", (("threshold", 0.9),)),
    "smollm2-block, adaptive": Lossy("adaptive"),
}
"""The block-diffusion model with one slot a pass, and with several."""
_VOCABULARY: Final = 49_152
_ROOM: Final = 400
_SEEDS: Final = 10_000_000
_SAMPLED: Final = SamplingParams(1.0)
TARGETS: Final = (
    Target("random", "filled_4", "validity", 1.0),
    Target("random", "filled_all", "validity", 1.0),
    Target("skeleton", "filled_4", "fewer_forwards", 3.0),
    Target("forms", _SURE, "fewer_forwards", 3.0),
    Target("forms", _SURE, "validity", 1.0),
    Target("documents", _SURE, "fewer_forwards", 3.0),
    Target("documents", _SURE, "validity", 1.0),
)


def rows(quick: bool) -> list[dict[str, Any]]:
    """All rows. Raises: `Skipped` where the tokenizer is not."""
    return [asdict(row) for row in _rows(Effort(quick))]


def _rows(effort: Effort) -> Iterator[Row]:
    try:
        path = locate(_AUTOREGRESSIVE)
    except ModelNotFound as missing:
        raise Skipped(str(missing)) from None
    noise = Noise(path)
    print("filling: random schemas", file=sys.stderr, flush=True)
    schemas = [random_schema(random.Random(seed)) for seed in range(effort.of(60, 500))]
    for system, plugs in noise.ways.items():
        yield from noise.tried("random", system, plugs, schemas)
    heavy = [skeleton_heavy(random.Random(seed)) for seed in range(effort.of(10, 50))]
    beside, tokens = noise.grammar_forwards(heavy)
    yield Row("skeleton", "grammar", "forwards", beside, "a document")
    yield Row("skeleton", "grammar, each token", "forwards", tokens, "a document")
    for system, plugs in noise.ways.items():
        found = noise.tried("skeleton", system, plugs, heavy)
        yield from found
        yield from _fewer("skeleton", system, beside, found)
    yield from _trained(effort, path)


def skeleton_heavy(chance: random.Random) -> Schema:
    """Eight to sixteen required properties with short values."""
    names = chance.sample(_NAMES, chance.randint(8, 16))
    return {
        "type": "object",
        "properties": {name: chance.choice(_SHORT)(chance) for name in names},
        "required": names,
        "additionalProperties": False,
    }


_NAMES: Final = tuple(
    f"{first}_{second}"
    for first in ("order", "customer", "delivery", "payment", "contract", "support")
    for second in ("is_confirmed", "priority_level", "status", "category_code", "number_of_items")
)
_SHORT: Final = (
    lambda _: {"type": "boolean"},
    lambda chance: {"type": "integer", "minimum": 0, "maximum": chance.choice([9, 50, 100])},
    lambda chance: {"enum": chance.sample(["low", "medium", "high", "open", "closed", "none"], 3)},
)


@dataclass(frozen=True, slots=True)
class _Filled:
    valid: bool
    exact: bool
    forwards: int
    tokens: int = 0


class Noise:
    """A model of no knowledge with SmolLM2's tokens: full attention, all slots open at once."""

    def __init__(self, path: Path) -> None:
        self.vocabulary = Vocabulary.load(path, _VOCABULARY, frozenset())
        mask = self.vocabulary.special_token("<empty_output>") or 0
        self.traits = ModelTraits(_VOCABULARY, mask, self.vocabulary.end_ids)
        self._structures = StructureCompiler(
            TokenVocabulary(self.vocabulary, self.traits.banned, self.vocabulary.end_ids)
        )
        self._grammars = GrammarCompiler(self.vocabulary, LocalOptions())
        self.ways = {
            "filled_1": _plugs(ThresholdPolicy(1.0, pace=EveryStep(1))),
            "filled_4": _plugs(ThresholdPolicy(1.0, pace=EveryStep(4))),
            "filled_all": _plugs(ThresholdPolicy(0.0)),
        }

    def forward(self, queries: Sequence[Query]) -> list[NDArray[np.float32]]:
        return [self._logits(query) for query in queries]

    def forget(self, row: int) -> None:
        """Nothing is kept."""

    def tried(
        self, case: str, system: str, plugs: DecoderConfig, schemas: Sequence[Schema]
    ) -> list[Row]:
        """How many of the schemas are filled so that they fit, and in how many passes."""
        if case == "random" and system == "filled_1":
            schemas = schemas[: max(1, len(schemas) // 5)]
        found = [self._filled(schema, plugs, seed) for seed, schema in enumerate(schemas)]
        return list(_told(case, system, found))

    def grammar_forwards(self, schemas: Sequence[Schema]) -> tuple[float, float]:
        """Passes a document where every token takes one that is not forced, and where each does."""
        found = [self._followed(one, n) for n, one in enumerate(schemas)]
        drawn, written = np.mean(found, axis=0)
        return float(drawn), float(written)

    def _filled(self, schema: Schema, plugs: DecoderConfig, seed: int) -> _Filled:
        structure = self._structures.start(
            room=_ROOM, schema=schema, follow=lambda: self._grammars.start(schema)
        )
        filling = StructureFiller(structure, self.traits)
        canvas = filling.canvas([1], row=seed)
        row = DenoisingRow(
            canvas, filling.configure(plugs), self.traits, CounterRng(seed), _SAMPLED
        )
        denoise_all([row], self)
        text = b"".join(self.vocabulary.bytes_of(int(token)) for token in row.kept).decode()
        return _Filled(_fits(text, schema), False, row.counters.forwards)

    def _followed(self, schema: Schema, seed: int) -> tuple[int, int]:
        grammar = self._grammars.start(schema)
        chance = np.random.default_rng(seed)
        drawn = 0
        written = len(grammar.forced())
        while not grammar.finished:
            logits = chance.normal(0, 3, _VOCABULARY).astype(np.float32)
            grammar.restrict(logits)
            token = int(logits.argmax())
            drawn += 1
            written += 1
            if token in self.vocabulary.end_ids:
                break
            grammar.accept(token)
            written += len(grammar.forced())
        return drawn, written

    def _logits(self, query: Query) -> NDArray[np.float32]:
        chance = np.random.default_rng([query.canvas.row, query.canvas.step])
        logits = chance.normal(0, 3, (len(query.wanted), _VOCABULARY)).astype(np.float32)
        logits[:, sorted(self.traits.banned)] = -np.inf
        return logits


def _plugs(policy: ThresholdPolicy) -> DecoderConfig:
    return DecoderConfig(policy, FixedBlocks(32), NoCache(), FirstTerminator())


def _trained(effort: Effort, path: Path) -> Iterator[Row]:
    """The same requests to models in this process, alike but for what they are."""
    told: dict[str, list[GeneratedDocument]] = {
        "forms": [random_form(np.random.default_rng(_SEEDS + n)) for n in range(effort.of(5, 40))],
        "documents": [
            random_document(np.random.default_rng(_SEEDS + n)) for n in range(effort.of(5, 50))
        ],
    }
    forwards: dict[str, float] = {}
    block = block_model()
    systems: list[tuple[str, Path | None, DecodeSpec]] = [(_AUTOREGRESSIVE, path, AUTOREGRESSIVE)]
    systems += [(name, block, way) for name, way in _SEVERAL.items()]
    for system, folder, decode in systems:
        if folder is None:
            yield Row("documents", system, "skipped: it is not here", None, "")
            continue
        for case, asked in told.items():
            print(f"filling: {case} by {system}", file=sys.stderr, flush=True)
            answers = asyncio.run(_answers(folder, asked, decode))
            found = list(_told(case, system, answers, exact=True))
            yield from found
            beside = forwards.setdefault(case, _value(found, "forwards"))
            if system != _AUTOREGRESSIVE:
                yield from _fewer(case, system, beside, found)


async def _answers(
    folder: Path, asked: Sequence[GeneratedDocument], decode: DecodeSpec
) -> list[_Filled]:
    options = LocalOptions(dtype="float32", max_string_chars=60, max_items=6, decode=decode)
    model = LocalModel(folder, options)
    try:
        return [await _answer(model, one) for one in asked]
    finally:
        await model.aclose()


async def _answer(model: LocalModel, made: GeneratedDocument) -> _Filled:
    asked = ModelRequest(
        messages=(Message("user", made.request),),
        schema=made.schema,
        sampling=Sampling(max_tokens=_ROOM, temperature=0.0, seed=0),
    )
    try:
        said = await complete(model, asked)
    except ModelError as error:
        print(f"filling: {error}", file=sys.stderr, flush=True)
        return _Filled(False, False, 0)
    fits = _fits(said.text, made.schema)
    same = fits and json.loads(said.text) == dict(made.fields)
    return _Filled(fits, same, said.usage.forwards or 0, said.usage.completion_tokens or 0)


def block_model() -> Path | None:
    """SmolLM2 as a block-diffusion model, where it has been trained."""
    try:
        return locate(_BLOCK)
    except ModelNotFound:
        return None


def _told(
    case: str, system: str, found: Sequence[_Filled], *, exact: bool = False
) -> Iterator[Row]:
    yield Row(case, system, "validity", float(np.mean([one.valid for one in found])), "share")
    yield Row(
        case, system, "forwards", float(np.mean([one.forwards for one in found])), "a document"
    )
    if exact:
        yield Row(case, system, "exact", float(np.mean([one.exact for one in found])), "share")
        written = float(np.mean([one.tokens for one in found]))
        yield Row(case, system, "tokens", written, "a document")


def _fewer(case: str, system: str, beside: float, found: Sequence[Row]) -> Iterator[Row]:
    forwards = _value(found, "forwards")
    if forwards:
        yield Row(case, system, "fewer_forwards", beside / forwards, "times")


def _value(found: Sequence[Row], metric: str) -> float:
    return next((row.value or 0.0 for row in found if row.metric == metric), 0.0)


def _fits(text: str, schema: JsonSchema) -> bool:
    try:
        read_answer(text, schema)
    except ModelError:
        return False
    return True
