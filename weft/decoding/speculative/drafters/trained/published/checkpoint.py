"""A published drafter's folder: config and tensors, each checked where it is taken.

What is unknown is refused by name: a key that weft does not read may change the mathematics. Files
of pickles are read by torch's `weights_only` loader, which makes tensors and runs no code.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

import torch

from weft.core.errors import CapabilityError
from weft.decoding import tensor_file
from weft.decoding.config_fields import CONFIG, ConfigFields, rope_parameters
from weft.decoding.network.network import Network
from weft.decoding.speculative.drafters.trained.feature_layers import MatrixHead

FILES: Final = ("model.safetensors", "pytorch_model.bin")
_INDEX: Final = "model.safetensors.index.json"
_OURS: Final = "weft_drafter"
_NO_MATHS: Final = frozenset(
    {
        "_attn_implementation",
        "_name_or_path",
        "architectures",
        "attention_dropout",
        "auto_map",
        "bos_token_id",
        "dtype",
        "embed_requires_grad",
        "eos_token_id",
        "has_no_defaults_at_init",
        "initializer_range",
        "max_position_embeddings",
        "max_window_layers",
        "model_type",
        "pad_token_id",
        "speculators_config",
        "speculators_model_type",
        "speculators_version",
        "tie_word_embeddings",
        "torch_dtype",
        "transformer_layer_config",  # checked by itself
        "transformers_version",
        "use_cache",
        "base_model_ep_plan",
        "base_model_tp_plan",
        "base_model_pp_plan",
    }
)
"""Keys that say nothing of how tokens are drafted."""

ModuleT = TypeVar("ModuleT", bound=torch.nn.Module)


def is_published(folder: Path) -> bool:
    """Whether a folder has a config.json that is not of weft's own format."""
    try:
        return _OURS not in ConfigFields.read(folder / CONFIG)
    except CapabilityError:
        return False


def check_keys(config: ConfigFields, read: Iterable[str]) -> None:
    """Raise `CapabilityError` for a key that is neither `read` nor known to be harmless.

    Keys that are null or false switch nothing on.
    """
    known = _NO_MATHS.union(read)
    for key, value in config.items():
        if key not in known and value is not None and value is not False:
            raise config.wrong(key, "weft does not know what this changes")


def rotary_frequencies(config: ConfigFields, head_dim: int, theta: float) -> tuple[float, ...]:
    """[head_dim / 2] of the config's rotary positions. Raises: `CapabilityError`."""
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

    positions = config.whole("max_position_embeddings", 1, 1 << 24, 2048)
    rope = rope_parameters(config, theta)
    if rope["rope_type"] == "yarn":
        raise config.wrong("rope_scaling", "drafters with YaRN are not run here")
    try:
        shape = LlamaConfig(
            hidden_size=head_dim,
            num_attention_heads=1,
            head_dim=head_dim,
            max_position_embeddings=positions,
            rope_parameters=rope,
        )
        frequencies = LlamaRotaryEmbedding(shape).inv_freq
    except (ValueError, TypeError, KeyError) as error:
        raise config.wrong("rope_scaling", f"no positions can be made of it: {error}") from error
    return tuple(frequencies.tolist())


@dataclass(slots=True)
class PublishedCheckpoint:
    """The tensors of one folder. `file`: where they are, for errors."""

    folder: Path
    file: Path
    tensors: Mapping[str, torch.Tensor]
    _taken: set[str] = field(default_factory=set)

    @classmethod
    def read(cls, folder: Path, files: Sequence[str] = FILES) -> PublishedCheckpoint:
        """Read the first of `files` that is there, or those of an index.

        Raises: `CapabilityError` where none is, or it is broken.
        """
        for name in files:
            if (folder / name).is_file():
                return cls(folder, folder / name, _tensors(folder / name))
        if (folder / _INDEX).is_file():
            index = ConfigFields.read(folder / _INDEX, 1 << 24).within("weight_map")
            tensors: dict[str, torch.Tensor] = {}
            for name in sorted({str(name) for _, name in index.items()}):
                if Path(name).name != name:
                    raise index.wrong("weight_map", f"{name!r} is no file of the folder")
                tensors |= _tensors(folder / name)
            return cls(folder, folder / _INDEX, tensors)
        raise CapabilityError(f"{folder} has no weights", hint=f"one of {', '.join(files)}")

    def __contains__(self, name: object) -> bool:
        return name in self.tensors

    def take(self, name: str, shape: tuple[int, ...]) -> torch.Tensor:
        """The floating tensor `name` of that shape, in float32. Raises: `CapabilityError`."""
        tensor = self._of_shape(name, shape)
        if not tensor.is_floating_point() or not bool(tensor.isfinite().all()):
            raise self.wrong(name, "holds no finite numbers")
        return tensor.float()

    def take_ids(self, name: str, shape: tuple[int, ...]) -> torch.Tensor:
        """The tensor `name` of whole numbers or truth values. Raises: `CapabilityError`."""
        tensor = self._of_shape(name, shape)
        if tensor.is_floating_point() or tensor.is_complex():
            raise self.wrong(name, "holds no whole numbers")
        return tensor.long()

    def skip(self, *names: str) -> None:
        """Tensors that are not needed."""
        self._taken.update(names)

    def fill(self, module: ModuleT, names: Mapping[str, str], like: torch.Tensor) -> ModuleT:
        """Load `module` for inference; `names` are the published ones by those of the module.
        Parameters without one are the caller's, who sets them before.

        Raises: `CapabilityError` naming the tensor that is missing or of another shape.
        """
        weights = {
            name: self.take(names[name], tuple(value.shape))
            for name, value in module.state_dict().items()
            if name in names
        }
        module.load_state_dict(weights, assign=True, strict=False)
        module.to(like.device, like.dtype).eval().requires_grad_(requires_grad=False)
        return module

    def close(self) -> None:
        """Raise `CapabilityError` for a tensor that nobody took."""
        unknown = sorted(self.tensors.keys() - self._taken)
        if unknown:
            raise self.wrong(unknown[0], "is no part of such a drafter")

    def wrong(self, name: str, why: str) -> CapabilityError:
        """The error for a tensor."""
        return CapabilityError(f"{self.file}: {name} {why}", hint="it is another kind of drafter")

    def _of_shape(self, name: str, shape: tuple[int, ...]) -> torch.Tensor:
        tensor = self.tensors.get(name)
        if tensor is None:
            raise self.wrong(name, "is missing")
        if tuple(tensor.shape) != shape:
            raise self.wrong(name, f"is {list(tensor.shape)}, not {list(shape)}")
        self._taken.add(name)
        return tensor


def own_head(
    checkpoint: PublishedCheckpoint, size: int, vocabulary: int, network: Network
) -> MatrixHead:
    """The drafter's own head: `lm_head.weight` [size, width], and which tokens its rows are.

    `d2t` [size] has the distance from a row's number to its token, `t2d` [vocabulary] whether a
    token has a row; without them rows are tokens.
    Raises: `CapabilityError` for tables that contradict each other, or leave the vocabulary.
    """
    like = network.embed([0])
    weight = checkpoint.take("lm_head.weight", (size, network.width)).to(like.device, like.dtype)
    ids = torch.arange(size)
    if "d2t" in checkpoint:
        ids = ids + checkpoint.take_ids("d2t", (size,))
    elif size != vocabulary:
        raise checkpoint.wrong("d2t", f"is missing: {size} rows are not {vocabulary} tokens")
    if int(ids.min()) < 0 or int(ids.max()) >= network.vocabulary_size or len(ids.unique()) < size:
        raise checkpoint.wrong("d2t", f"does not lead to {size} different tokens of the model")
    if "t2d" in checkpoint:
        drafted = checkpoint.take_ids("t2d", (vocabulary,)).nonzero()[:, 0]
        if not torch.equal(drafted, ids.sort().values):
            raise checkpoint.wrong("t2d", "says of other tokens than d2t that they are drafted")
    return MatrixHead(ids, weight)


def _tensors(path: Path) -> Mapping[str, torch.Tensor]:
    if path.suffix == ".safetensors":
        try:
            return tensor_file.read(path)[0]
        except tensor_file.TensorFileError as error:
            raise CapabilityError(str(error)) from error
    try:
        read = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise CapabilityError(
            f"{path} cannot be read as tensors alone: {type(error).__name__}",
            hint="weft runs no code that comes with weights; convert the file to safetensors",
        ) from error
    if not isinstance(read, dict) or not all(
        isinstance(name, str) and isinstance(value, torch.Tensor | int)
        for name, value in read.items()
    ):
        raise CapabilityError(f"{path} holds something else than tensors by name")
    return {name: torch.as_tensor(value) for name, value in read.items()}
