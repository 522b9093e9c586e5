"""Tensors in one safetensors file with notes; writes are atomic."""

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
    """The file is missing or no safetensors file; the message names it and the reason."""


def write(path: Path, tensors: Mapping[str, torch.Tensor], notes: Mapping[str, str]) -> None:
    """Replace the file at `path` at once; its folder must exist. Raises: `OSError`."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    try:
        save_file(plain, partial, dict(notes))
        partial.chmod(_MODE)  # safetensors creates it for its owner alone
        partial.replace(path)
    except SafetensorError as error:
        raise OSError(f"{path} cannot be written: {error}") from error
    finally:
        partial.unlink(missing_ok=True)


def read(path: Path) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    """The tensors and the notes. Raises: `TensorFileError`."""
    try:
        with safe_open(path, framework="pt") as opened:
            notes = dict(opened.metadata() or {})
            return {name: opened.get_tensor(name) for name in opened.keys()}, notes  # noqa: SIM118
    except (SafetensorError, OSError, ValueError) as error:
        raise TensorFileError(f"{path} cannot be read: {error}") from error
