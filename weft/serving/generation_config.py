"""The sampling of a model where a request leaves it open. Loads no weights.

As in vLLM: the temperature, top_p and top_k of `generation_config.json`, whatever its `do_sample`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from weft.core.ports.model import Sampling

DEFAULT_TEMPERATURE: Final = 1.0
"""Without a temperature in the request and in the generation config; as in vLLM and OpenAI."""
DIFFUSION_TEMPERATURE: Final = 0.0
"""The same for diffusion models in this process: decoders by confidence are greedy."""


def default_sampling(folder: Path, temperature: float) -> Sampling:
    """The default sampling of the model in `folder`; `temperature` if its config has none."""
    config = _read(folder / "generation_config.json")
    found = _number(config.get("temperature"))
    return Sampling(
        temperature=temperature if found is None else found,
        top_p=_number(config.get("top_p")),
        top_k=int(_number(config.get("top_k")) or 0) or None,
    )


def _read(file: Path) -> dict[str, Any]:
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return config if isinstance(config, dict) else {}


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
