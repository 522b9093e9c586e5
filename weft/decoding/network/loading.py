"""Reading a model's folder: its weights as they are, and no code that comes with them.

Refuses models whose rows cannot share a flat batch.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from weft.core.errors import CapabilityError
from weft.decoding.network import attention
from weft.decoding.network.options import NetworkOptions

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

# transformers swaps process-wide initialisers while it loads: two threads at once break each other,
# and every load after them
LOADING = threading.Lock()


@dataclass(frozen=True, slots=True)
class Dialect:
    """A folder that speaks of a model of transformers in words of its own.

    kind    transformers' class
    config  read in the folder's place
    keys    regular expressions of weight names, and what replaces them
    """

    kind: type[PreTrainedModel]
    config: PretrainedConfig
    keys: Mapping[str, str] = field(default_factory=dict)


def load_weights(
    path: Path,
    options: NetworkOptions,
    dialect: Dialect | None = None,
    attends: str = attention.NAME,
) -> PreTrainedModel:
    """Read a folder's safetensors weights onto the device. `attends` by transformers' name: that of
    a `Network` is for inference.

    Raises: `CapabilityError` for a model of another kind; what transformers raises when the files
    are broken.
    """
    from transformers import AutoConfig, AutoModelForCausalLM

    attention.register()
    if dialect is None:
        config = AutoConfig.from_pretrained(path, local_files_only=True)
        kind, keys = AutoModelForCausalLM, None
    else:
        config, kind, keys = dialect.config, dialect.kind, dict(dialect.keys) or None
    _check_kind(config.get_text_config())
    with LOADING, quiet():
        model: PreTrainedModel = kind.from_pretrained(
            path.absolute(),
            config=config,
            key_mapping=keys,
            dtype=dtype_of(options),
            attn_implementation=attends,
            use_safetensors=True,
            local_files_only=True,
        )
    with torch.no_grad():
        return model.to(options.device).eval()


def folder_of(model: PreTrainedModel) -> Path | None:
    """Where a model was read from; None for one that was made."""
    return Path(model.config.name_or_path) if model.config.name_or_path else None


def _check_kind(config: PretrainedConfig) -> None:
    """Refuse what rows of one flat batch cannot share: windows, states, length-dependent angles."""
    layers = set(getattr(config, "layer_types", None) or ()) - {"full_attention"}
    rope = (getattr(config, "rope_parameters", None) or {}).get("rope_type")
    if layers or rope in {"dynamic", "longrope"}:
        raise CapabilityError(f"a local model cannot have {sorted(layers) or f'{rope} positions'}")


def dtype_of(options: NetworkOptions) -> torch.dtype:
    """What `auto` stands for on this machine."""
    if options.dtype != "auto":
        return torch.float32 if options.dtype == "float32" else torch.bfloat16
    if options.device != "cpu":
        return torch.bfloat16
    can = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    fast = can.get("avx512_bf16") or can.get("amx_bf16")
    return torch.bfloat16 if fast else torch.float32


@contextmanager
def quiet() -> Iterator[None]:
    """Keep transformers' progress bars off the terminal, which belongs to the program."""
    from transformers.utils import logging as transformers_logging

    shown = transformers_logging.is_progress_bar_enabled()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            transformers_logging.enable_progress_bar()
