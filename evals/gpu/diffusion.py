"""Every diffusion decoder on the list models: valid answers, tokens a pass, time."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from evals.engine.rows import Row
from evals.gpu.bench import Bench
from evals.gpu.local_engine import StepwiseEngine
from weft.core.errors import WeftError
from weft.core.ports import ModelRequest, Sampling
from weft.core.values import Completion, Lossless, Lossy
from weft.decoding.diffusion.catalogue import NAMES, preset
from weft.decoding.diffusion.oracle import vocabulary as words
from weft.serving.local.diffusion.batcher import DiffusionBatcher
from weft.serving.weights import locate

_ON = {"sdar": "list-block", "fastdllm_v2": "list-block", "llada2": "list-block"}
"""Decoders of block models; the others are for the full one."""
_ITEMS = ("Tom", "Adam", "Mary", "Anna", "Paul", "Lucy", "John", "Jane")


def rows(bench: Bench) -> Iterator[Row]:
    """Reversed lists, greedily: one answer of each is right."""

    @cache
    def engine(model: str) -> StepwiseEngine:
        return StepwiseEngine(DiffusionBatcher.load(locate(model), bench.options()))

    lists = [_ITEMS[first : first + 3] for first in range(bench.of(5, 1))]
    for name in NAMES:
        model = _ON.get(name, "list-full")
        options = tuple(_needed(name).items())
        spec = (Lossless if preset(name).plain else Lossy)(name, options)
        asked = [
            ModelRequest(
                prompt_token_ids=words.ids_of(f"reverse <sep> {' '.join(items)} <sep>"),
                decode=spec,
                sampling=Sampling(max_tokens=len(items) + 1, temperature=0.0),
            )
            for items in lists
        ]
        try:
            if not bench.dry:
                engine(model).answers(asked[:1])
            found, seconds = engine(model).answers(asked)
        except (WeftError, RuntimeError) as error:
            yield Row("diffusion", name, f"skipped: {error}", None, "")
            continue
        yield from _told(name, lists, found, seconds)


def _told(
    name: str, lists: list[tuple[str, ...]], found: list[Completion], seconds: float
) -> Iterator[Row]:
    right = [
        one.token_ids[: len(items)] == tuple(words.ids_of(" ".join(reversed(items))))
        for items, one in zip(lists, found, strict=True)
    ]
    passes = sum(one.denoised.forwards for one in found if one.denoised is not None)
    written = sum(len(one.token_ids) for one in found)
    yield Row("diffusion", name, "right", sum(right) / len(right), "share")
    yield Row("diffusion", name, "tokens_per_forward", written / max(passes, 1), "tokens")
    yield Row("diffusion", name, "wall_ms", 1000 * seconds / len(found), "ms")


def _needed(name: str) -> dict[str, str | int]:
    """What a decoder cannot do without on the list models."""
    if name == "flashdlm":
        return {"supervisor": str(locate("list-ar"))}
    if name == "llada22":
        control = {"keep": 13, "delete": 14, "insert": 15}
        return {key: words.index_id(number) for key, number in control.items()}
    return {}
