"""The command that serves a diffusion folder by vLLM, for a machine with a GPU. Starts nothing."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from weft.core.errors import SpecError
from weft.decoding.diffusion.models.description import described
from weft.serving.vllm.diffusion.architectures import ARCHITECTURES, CANVAS

ENVIRONMENT = {"VLLM_USE_V2_MODEL_RUNNER": "1", "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1"}
"""Without the second model runner there are no canvases."""


def command(path: Path, canvas: int | None = None, port: int = 8000) -> list[str]:
    """For the folder at `path`; `canvas`: slots, where the model has no blocks of its own.

    Raises: `CapabilityError` for what is no diffusion model that weft runs, `SpecError` for a
    canvas that is no block of it.
    """
    found = described(path)
    block = found.traits.block
    if canvas is not None and (canvas < 1 or (block and canvas != block)):
        raise SpecError(f"a canvas of {canvas} slots for a model with blocks of {block}")
    width = canvas or block or CANVAS
    override = {"architectures": [ARCHITECTURES[found.body]], "canvas_length": width}
    return [
        sys.executable,
        *("-m", "vllm.entrypoints.openai.api_server"),
        *("--model", str(path.resolve())),
        *("--hf-overrides", json.dumps(override)),
        *("--diffusion-config", json.dumps({"canvas_length": width})),
        *("--generation-config", "vllm"),  # the folder's own says a temperature, which is refused
        *("--host", "127.0.0.1"),
        *("--port", str(port)),
    ]
