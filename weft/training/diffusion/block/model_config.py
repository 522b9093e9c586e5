"""What a converted model's folder says of it, as `weft.decoding.diffusion.models` reads it.

Knows no weights.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Final

from weft.decoding.speculative.trained_drafter import Fingerprint

CONFIG: Final = "config.json"
ADAPTER: Final = "adapter.safetensors"
_OWN: Final = "weft_diffusion"
_TEXT_FILES: Final = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")


def write_adapter_config(
    folder: Path, model_type: str, told: Mapping[str, object], base: Fingerprint
) -> None:
    """Of a folder with thin maps for the model `base`, as `told`. Raises: `OSError`."""
    own = {**told, "adapter": ADAPTER, "target": asdict(base)}
    _write_config(folder, {"model_type": model_type, _OWN: own})


def write_model_config(folder: Path, base: Path, told: Mapping[str, object]) -> None:
    """Of a folder with all weights, whose config is there; it gets the texts' files of `base`.

    Raises: `OSError`.
    """
    for name in _TEXT_FILES:
        if (base / name).is_file():
            shutil.copyfile(base / name, folder / name)
    _write_config(folder, {**json.loads((folder / CONFIG).read_text("utf-8")), _OWN: dict(told)})


def _write_config(folder: Path, config: Mapping[str, object]) -> None:
    beside = folder / f".{CONFIG}.{os.getpid()}"
    beside.write_text(json.dumps(config, indent=1, allow_nan=False) + "\n", "utf-8")
    beside.replace(folder / CONFIG)
