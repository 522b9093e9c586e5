"""Trained drafters as folders: a config that names their target model, and weights.

The loading method interprets settings and tensors.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Protocol, TypeVar

import torch

from weft.core.errors import CapabilityError
from weft.decoding import tensor_file
from weft.decoding.shipped_weights import shipped_weights

CONFIG: Final = "config.json"
WEIGHTS: Final = "model.safetensors"
_FORMAT: Final = 1
_KIND: Final = "weft_drafter"
_LARGEST_CONFIG_BYTES: Final = 1 << 20
_DIGESTED_ROWS: Final = 64
_HUGE: Final = 1e30


ModuleT = TypeVar("ModuleT", bound=torch.nn.Module)


class FingerprintedModel(Protocol):
    """The properties of a target model that identify it."""

    @property
    def layers(self) -> int:
        """Number of decoder layers."""

    @property
    def width(self) -> int:
        """Width of its hidden states."""

    @property
    def vocabulary_size(self) -> int:
        """Number of logits."""

    def embed(self, tokens: Sequence[int]) -> torch.Tensor:
        """[tokens, width]: embeddings of tokens."""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Identity of a model. `digest`: SHA-256 of the embeddings of its first tokens in bfloat16, so
    that the precision in which it was loaded does not matter.
    """

    hidden_size: int
    num_hidden_layers: int
    vocab_size: int
    digest: str

    @classmethod
    def of(cls, target: FingerprintedModel) -> Fingerprint:
        """The fingerprint of a loaded model."""
        rows = target.embed(range(min(_DIGESTED_ROWS, target.vocabulary_size)))
        bits = rows.detach().cpu().to(torch.bfloat16).view(torch.int16).contiguous()
        digest = hashlib.sha256(bits.numpy().astype("<i2").tobytes()).hexdigest()
        return cls(target.width, target.layers, target.vocabulary_size, digest)


@dataclass(frozen=True, slots=True, eq=False)
class TrainedDrafter:
    """A trained drafter as loaded; methods read its values with these checked getters."""

    folder: Path
    kind: str
    settings: Mapping[str, object]
    tensors: Mapping[str, torch.Tensor]

    def whole(self, name: str, low: int, high: int) -> int:
        """The setting `name`, a whole number from `low` to `high`. Raises: `CapabilityError`."""
        value = self.settings.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise self.broken(f"{name} is {value!r}, not a whole number from {low} to {high}")
        return value

    def table(self, name: str, rows: int) -> tuple[tuple[float, ...], ...]:
        """The setting `name`: `rows` rows of numbers, equally long. Raises: `CapabilityError`."""
        value = self.settings.get(name)
        if not isinstance(value, list) or len(value) != rows:
            raise self.broken(f"{name} has not {rows} rows")
        if not all(isinstance(row, list) and len(row) == len(value[0]) for row in value):
            raise self.broken(f"the rows of {name} are no table")
        for number in (number for row in value for number in row):
            fine = isinstance(number, (int, float)) and not isinstance(number, bool)
            if not fine or not -_HUGE < number < _HUGE:
                raise self.broken(f"{name} has {number!r} in it, which is no number")
        return tuple(tuple(map(float, row)) for row in value)

    def tensor(self, name: str, shape: tuple[int, ...]) -> torch.Tensor:
        """The floating tensor `name` of that shape, as float32. Raises: `CapabilityError`."""
        tensor = self._of_shape(name, shape)
        if not tensor.is_floating_point() or not tensor.isfinite().all():
            raise self.broken(f"the tensor {name} holds no finite numbers")
        return tensor.float()

    def ids(self, name: str, below: int) -> torch.Tensor:
        """The tensor `name`: one or more distinct token ids. Raises: as `tensor`."""
        tensor = self.tensors.get(name)
        if tensor is None or tensor.ndim != 1 or not len(tensor) or tensor.is_floating_point():
            raise self.broken(f"{name} is no list of token ids")
        if tensor.min() < 0 or tensor.max() >= below or len(tensor.unique()) < len(tensor):
            raise self.broken(f"the token ids {name} are not all different, from 0 to {below - 1}")
        return tensor.long()

    def taps(self, layers: int) -> tuple[int, ...]:
        """The target's `layers` whose input states it needs; their number: the last output."""
        return tuple(
            self.whole(f"tap_{n}", 0, layers) for n in range(self.whole("taps", 1, layers + 1))
        )

    def fill(self, module: ModuleT, like: torch.Tensor) -> ModuleT:
        """Load `module` for inference, with device and dtype of `like`. Raises: as `tensor`."""
        weights = {
            name: self.tensor(name, tuple(value.shape))
            for name, value in module.state_dict().items()
        }
        module.load_state_dict(weights, assign=True)
        module.to(like.device, like.dtype).eval().requires_grad_(requires_grad=False)
        return module

    def broken(self, why: str) -> CapabilityError:
        """The error for a broken folder."""
        return _unfit(self.folder, self.kind, why)

    def _of_shape(self, name: str, shape: tuple[int, ...]) -> torch.Tensor:
        tensor = self.tensors.get(name)
        if tensor is None:
            raise self.broken(f"it has no tensor {name}")
        if tuple(tensor.shape) != shape:
            raise self.broken(f"the tensor {name} is {list(tensor.shape)}, not {list(shape)}")
        return tensor


def save(
    folder: Path,
    kind: str,
    settings: Mapping[str, object],
    tensors: Mapping[str, torch.Tensor],
    target: FingerprintedModel,
) -> None:
    """Write a drafter for `target` to `folder`, which is created; `settings` are JSON values.

    Raises: `OSError`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tensor_file.write(folder / WEIGHTS, tensors, {"format": "pt"})
    described = {_KIND: kind, "format": _FORMAT, "target": asdict(Fingerprint.of(target))}
    text = json.dumps({**described, **settings}, indent=1, allow_nan=False)
    partial = folder / f".{CONFIG}.{os.getpid()}"
    partial.write_text(text + "\n", "utf-8")
    partial.replace(folder / CONFIG)


def load(folder: Path, kind: str, target: FingerprintedModel) -> TrainedDrafter:
    """Load a drafter of `kind` for `target`.

    Raises: `CapabilityError` where it is missing, of another kind, for another model, or
    its files are broken; the hint names the command that trains one.
    """
    config = _config(folder, kind)
    _check(folder, kind, config, Fingerprint.of(target))
    try:
        tensors, _ = tensor_file.read(folder / WEIGHTS)
    except tensor_file.TensorFileError as error:
        raise _unfit(folder, kind, str(error)) from error
    settings = {k: v for k, v in config.items() if k not in {_KIND, "format", "target"}}
    return TrainedDrafter(folder, kind, settings, tensors)


def find(kind: str, target: FingerprintedModel, given: str | None = None) -> TrainedDrafter:
    """The drafter in the folder `given`, else the one for `target` that comes with weft.

    Raises: as `load`; `CapabilityError` where the package of weft's own is missing.
    """
    if given is not None:
        return load(Path(given).expanduser(), kind, target)
    wanted = asdict(Fingerprint.of(target))
    for path in sorted(shipped_weights("speculative").glob(f"*/{CONFIG}")):
        config = _config(path.parent, kind)
        if config.get(_KIND) == kind and config.get("target") == wanted:
            return load(path.parent, kind, target)
    raise CapabilityError(
        f"no {kind} drafter for this model comes with weft, and none was given", hint=_hint(kind)
    )


def _config(folder: Path, kind: str) -> dict[str, object]:
    path = folder / CONFIG
    try:
        with path.open("rb") as opened:
            raw = opened.read(_LARGEST_CONFIG_BYTES + 1)
    except OSError as error:
        why = f"{CONFIG} cannot be read: {error.strerror}"
        raise _unfit(folder, kind, why) from error
    if len(raw) > _LARGEST_CONFIG_BYTES:
        raise _unfit(folder, kind, f"{CONFIG} has more than {_LARGEST_CONFIG_BYTES} bytes")
    try:
        config = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise _unfit(folder, kind, f"{CONFIG} is no JSON: {error}") from error
    if not isinstance(config, dict):
        raise _unfit(folder, kind, f"{CONFIG} is no JSON object")
    return config


def _check(folder: Path, kind: str, config: Mapping[str, object], here: Fingerprint) -> None:
    if config.get(_KIND) != kind:
        raise _unfit(folder, kind, f"what it holds is {config.get(_KIND)!r}")
    if config.get("format") != _FORMAT:
        raise _unfit(folder, kind, f"its format is {config.get('format')!r}, not {_FORMAT}")
    there = config.get("target")
    if not isinstance(there, dict):
        raise _unfit(folder, kind, "it does not say for which model it is")
    for name, value in asdict(here).items():
        if there.get(name) != value:
            short = f"{name} {str(there.get(name))[:12]}, not {str(value)[:12]}"
            raise _unfit(folder, kind, f"it was trained for another model: {short}")


def _unfit(folder: Path, kind: str, why: str) -> CapabilityError:
    return CapabilityError(f"{folder} is no {kind} drafter for this model: {why}", hint=_hint(kind))


def _hint(kind: str) -> str:
    return (
        f"`weft train-drafter {kind} --model MODEL --data FILE --out FOLDER` makes one;"
        " give its folder as the option model"
    )
