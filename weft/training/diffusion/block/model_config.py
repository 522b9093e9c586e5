"""The config of a trained model's folder, as `weft.decoding.diffusion.models` reads it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Final

from weft.decoding.config_fields import CONFIG, write_config
from weft.decoding.diffusion.models.folder import OWN
from weft.decoding.speculative.trained_drafter import Fingerprint

ADAPTER: Final = "adapter.safetensors"
_TEXT_FILES: Final = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")


def write_adapter_config(
    folder: Path, model_type: str, details: Mapping[str, object], base: Fingerprint
) -> None:
    """Write the config of an adapter folder for `base`, with `details`. Raises: `OSError`."""
    own = {**details, "adapter": ADAPTER, "target": asdict(base)}
    write_config(folder, {"model_type": model_type, OWN: own})


def write_model_config(folder: Path, base: Path, details: Mapping[str, object]) -> None:
    """Add `details` to the config of a folder with all weights, and the text files of `base`.

    Raises: `OSError`.
    """
    for name in _TEXT_FILES:
        if (base / name).is_file():
            shutil.copyfile(base / name, folder / name)
    write_config(folder, {**json.loads((folder / CONFIG).read_text("utf-8")), OWN: dict(details)})
