"""Tensors in one file: safetensors, with notes beside them. A reader never sees half a file.

Knows nothing of what the tensors are.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

_MODE: Final = 0o644


class TensorFileError(Exception):
    """The file is not there, or is no safetensors file. Says which, and why."""


def write(path: Path, tensors: Mapping[str, torch.Tensor], notes: Mapping[str, str]) -> None:
    """Replace the file at `path`, whose folder is there; the old one stays until that is done.

    Raises: `OSError`.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    try:
        save_file(plain, beside, dict(notes))
        beside.chmod(_MODE)  # it is written for its owner alone, unlike other files
        beside.replace(path)
    except SafetensorError as error:
        raise OSError(f"{path} cannot be written: {error}") from error
    finally:
        beside.unlink(missing_ok=True)


def read(path: Path) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    """The tensors and the notes. Raises: `TensorFileError`."""
    try:
        with safe_open(path, framework="pt") as opened:
            notes = dict(opened.metadata() or {})
            return {name: opened.get_tensor(name) for name in opened.keys()}, notes  # noqa: SIM118
    except (SafetensorError, OSError, ValueError) as error:
        raise TensorFileError(f"{path} cannot be read: {error}") from error
