"""What presets need that need something, made by hand: a filter, a supervisor, control tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Final

import numpy as np
import pytest
from numpy.typing import NDArray

from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.catalogue import decoder_config
from weft.decoding.diffusion.guidance import supervisor
from weft.decoding.diffusion.oracle import vocabulary as words
from weft.decoding.diffusion.oracle.adapter import distribution_of
from weft.decoding.diffusion.oracle.language import read_question
from weft.decoding.diffusion.policies import learn2pd
from weft.decoding.diffusion.policies.learn2pd import FinalityFilter
from weft.decoding.diffusion.ports import DecoderConfig

_DIGEST: Final = "0" * 64
_SLOTS: Final = 8
_STEEP: Final = 40.0
_LONGEST: Final = 16


def plugs_with(
    name: str, traits: ModelTraits, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> DecoderConfig:
    """The plugs of a preset with all that it needs."""
    if name == "learn2pd":
        learn2pd.save_filter(folder, neighbourly(), _DIGEST, {})
        return decoder_config(name, replace(traits, digest=_DIGEST), {"filter": str(folder)})
    if name == "flashdlm":
        reader = Reader()
        monkeypatch.setattr(supervisor, "supervisor_of", lambda *_: reader)
        return decoder_config(name, traits, {"supervisor": "any"})
    if name == "llada22":  # high index tokens, which short lists have no use for
        keep, delete, insert = (words.index_id(index) for index in (13, 14, 15))
        return decoder_config(name, traits, {"keep": keep, "delete": delete, "insert": insert})
    return decoder_config(name, traits, {})


def neighbourly() -> FinalityFilter:
    """A filter that takes a slot for final where it and its neighbours are sure on average."""
    near = np.eye(_SLOTS) + 0.5 * np.eye(_SLOTS, k=1) + 0.5 * np.eye(_SLOTS, k=-1)
    inward = (near / near.sum(axis=1, keepdims=True)).astype(np.float32)
    one = np.eye(_SLOTS, dtype=np.float32)
    return FinalityFilter(
        inward,
        np.zeros(_SLOTS, np.float32),
        np.float32(_STEEP) * one,
        np.full(_SLOTS, -0.7 * _STEEP, np.float32),
    )


@dataclass
class Reader:
    """In the place of a causal network that is never wrong: it has read all of the text so far, and
    knows nothing of what follows.
    """

    vocabulary_size: int = words.SIZE
    path: Path | None = None
    _texts: dict[int, list[int]] = field(default_factory=dict)
    _fresh: count[int] = field(default_factory=count)

    def take(self) -> int:
        slot = next(self._fresh)
        self._texts[slot] = []
        return slot

    def give(self, slot: int) -> None:
        self._texts.pop(slot, None)

    def read(
        self, slot: int, first: int, tokens: Sequence[int], wanted: int
    ) -> NDArray[np.float32]:
        text = [*self._texts[slot][:first], *tokens]
        assert len(text) == first + len(tokens)
        self._texts[slot] = text
        places = range(len(text) - wanted + 1, len(text) + 1)
        return np.stack([_next(text[:place]) for place in places])


def _next(text: list[int]) -> NDArray[np.float32]:
    """Of the token behind `text`, [vocabulary]: among all answers that begin so."""
    begin = max(at for at, token in enumerate(text) if token == words.SEP) + 1
    law = distribution_of(read_question(text[:begin]), _LONGEST)
    said = text[begin:]
    answer = np.array(said + [words.EOS] * (_LONGEST - len(said)), dtype=np.int64)
    seen = np.arange(_LONGEST) < len(said)
    logits: NDArray[np.float32] = law.given(answer, seen, np.array([len(said)]))[0]
    return logits
