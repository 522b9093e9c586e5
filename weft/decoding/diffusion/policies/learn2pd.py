"""Learn2PD (arXiv 2509.25188): a trained filter decides which predictions of a block are final.

A tiny network from confidences to verdicts, in numpy, for the one model it was trained on.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from weft.core.errors import CapabilityError
from weft.decoding.config_fields import CONFIG, ConfigFields, write_config
from weft.decoding.diffusion.action import Action
from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.policies.ranking import commit, rank_rows
from weft.decoding.diffusion.ports import Need
from weft.decoding.diffusion.stats import SampledTokens, Stats
from weft.decoding.shipped_weights import shipped_weights

_FILTER: Final = "learn2pd"
WEIGHTS: Final = "model.safetensors"
_OWN: Final = "weft_filter"
_FORMAT: Final = 1
_MOST_SLOTS: Final = 4096
_MOST_HIDDEN: Final = 4096
_LARGEST_BYTES: Final = 1 << 26
_HINT: Final = "`weft train-diffusion learn2pd --model MODEL --out FOLDER` makes one for this model"

Weights = Mapping[str, NDArray[np.float32]]


@dataclass(frozen=True, slots=True, eq=False)
class FinalityFilter:
    """Learn2PD's filter (Bao et al., arXiv 2509.25188): two layers from confidences to verdicts.

    inward [hidden, slots], inner [hidden], outward [slots, hidden], outer [slots]
    """

    inward: NDArray[np.float32]
    inner: NDArray[np.float32]
    outward: NDArray[np.float32]
    outer: NDArray[np.float32]

    @property
    def slots(self) -> int:
        """Slots of the longest block it can judge."""
        return len(self.outer)

    def final(self, confidences: NDArray[np.float64]) -> NDArray[np.float64]:
        """Probabilities that the predictions are final, [slots], from confidences [slots]."""
        hidden = np.maximum(self.inward @ confidences + self.inner, 0.0)
        odds = self.outward @ hidden + self.outer
        final: NDArray[np.float64] = 0.5 * (1.0 + np.tanh(0.5 * odds))  # logistic, no overflow
        return final

    @property
    def tensors(self) -> Weights:
        """By name, as they are stored."""
        return {
            "inward": self.inward,
            "inner": self.inner,
            "outward": self.outward,
            "outer": self.outer,
        }


def save_filter(
    folder: Path, finality: FinalityFilter, digest: str, details: Mapping[str, object]
) -> None:
    """Write the filter of the model with that digest, with JSON `details` of its training.

    Raises: `OSError`.
    """
    hidden, slots = finality.inward.shape
    partial = folder / f".{WEIGHTS}.{os.getpid()}"
    save_file({name: np.ascontiguousarray(w) for name, w in finality.tensors.items()}, partial)
    partial.chmod(0o644)
    partial.replace(folder / WEIGHTS)
    own = {"format": _FORMAT, "slots": slots, "hidden": hidden, "model": digest, **details}
    write_config(folder, {_OWN: own})


def load_filter(folder: Path, digest: str) -> FinalityFilter:
    """Load the filter in `folder`, trained for the model of that digest.

    Raises: `CapabilityError` for a missing or broken filter, or one of another model.
    """
    if not (folder / CONFIG).is_file():
        raise CapabilityError(f"there is no filter at {folder}", hint=_HINT)
    config = ConfigFields.read(folder / CONFIG)
    if _OWN not in config:
        raise CapabilityError(f"{folder} holds no filter", hint=_HINT)
    own = config.within(_OWN)
    own.whole("format", _FORMAT, _FORMAT)
    slots, hidden = own.whole("slots", 1, _MOST_SLOTS), own.whole("hidden", 1, _MOST_HIDDEN)
    if not digest or own.text("model") != digest:
        short = f"{own.text('model')[:12]}, not {digest[:12] or 'unknown'}"
        raise CapabilityError(f"{folder} was trained for another model: {short}", hint=_HINT)
    tensors = _filter_tensors(folder / WEIGHTS)
    shapes = {
        "inward": (hidden, slots),
        "inner": (hidden,),
        "outward": (slots, hidden),
        "outer": (slots,),
    }
    for name, shape in shapes.items():
        tensor = tensors.get(name)
        if tensor is None or tensor.shape != shape or tensor.dtype != np.float32:
            raise CapabilityError(f"{folder / WEIGHTS}: {name} is not {list(shape)}", hint=_HINT)
        if not np.isfinite(tensor).all():
            raise CapabilityError(f"{folder / WEIGHTS}: {name} is not finite", hint=_HINT)
    return FinalityFilter(*(tensors[name] for name in shapes))


def find_filter(folder: Path | None, digest: str) -> FinalityFilter:
    """The filter in `folder`; without one, weft's own for the model. Raises: as `load_filter`."""
    if folder is not None:
        return load_filter(folder, digest)
    for path in sorted(shipped_weights("diffusion").glob(f"*/{_FILTER}/{CONFIG}")):
        own = ConfigFields.read(path).within(_OWN)
        if digest and own.text("model", "") == digest:
            return load_filter(path.parent, digest)
    raise CapabilityError("no filter for this model comes with weft", hint=_HINT)


def _filter_tensors(path: Path) -> Weights:
    try:
        if path.stat().st_size > _LARGEST_BYTES:
            raise CapabilityError(f"{path} has more than {_LARGEST_BYTES} bytes", hint=_HINT)
        found: Weights = load_file(path)
    except (OSError, SafetensorError, ValueError) as error:
        raise CapabilityError(f"{path} cannot be read: {error}", hint=_HINT) from error
    return found


@dataclass(frozen=True, slots=True)
class Learn2pdPolicy:
    """Learn2PD (Bao et al., arXiv 2509.25188): writes slots whose verdict is above `threshold`, and
    the surest one. Of a window that is longer than the filter, only the first slots are judged.
    """

    finality: FinalityFilter
    threshold: float = 0.9
    needs: frozenset[Need] = frozenset()

    def __post_init__(self) -> None:
        if not 0.0 <= self.threshold <= 1.0:
            raise ValueError(f"a threshold of {self.threshold}")

    def begin(self, _canvas: Canvas, _traits: ModelTraits) -> _Learn2pdSession:
        return _Learn2pdSession(self)

    def most_forwards(self, slots: int) -> int:
        return slots


class _Learn2pdSession:
    def __init__(self, settings: Learn2pdPolicy) -> None:
        self._settings = settings

    def propose(self, stats: Stats, drawn: SampledTokens, canvas: Canvas) -> Action:
        finality = self._settings.finality
        final = finality.final(confidences(stats, canvas, finality.slots))
        places = stats.slots - canvas.window.start
        judged = stats.open & (places < finality.slots)
        sure = np.zeros(len(stats.slots), dtype=np.bool_)
        sure[judged] = final[places[judged]] > self._settings.threshold
        sure[rank_rows(stats.confidence, stats.open)[:1]] = True
        return commit(stats, drawn, sure)


def confidences(stats: Stats, canvas: Canvas, slots: int) -> NDArray[np.float64]:
    """[slots] of the window from its first on: the confidence of open slots, 1 for others."""
    values = np.ones(slots)
    places = stats.slots - canvas.window.start
    inside = stats.open & (places < slots)
    values[places[inside]] = stats.confidence[inside]
    return values
