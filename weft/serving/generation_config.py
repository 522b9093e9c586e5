"""What a model is sampled with where a request leaves it open. Loads no weights.

Read as vLLM reads it: the temperature, top_p and top_k of `generation_config.json`, whatever its
`do_sample` says.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from weft.core.ports.model import Sampling

DEFAULT_TEMPERATURE: Final = 1.0
"""Where neither the request nor the model's generation config says one; vLLM's and OpenAI's."""
DIFFUSION_TEMPERATURE: Final = 0.0
"""The same for diffusion models in this process: decoders that go by confidence are greedy."""


def default_sampling(folder: Path, temperature: float) -> Sampling:
    """What stands in for what a request leaves open; `temperature` where the config says none."""
    said = _read(folder / "generation_config.json")
    found = _number(said.get("temperature"))
    return Sampling(
        temperature=temperature if found is None else found,
        top_p=_number(said.get("top_p")),
        top_k=int(_number(said.get("top_k")) or 0) or None,
    )


def _read(file: Path) -> dict[str, Any]:
    try:
        said = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return said if isinstance(said, dict) else {}


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
