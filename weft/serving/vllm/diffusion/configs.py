"""Published model types made known to transformers, so that vLLM reads their folders without code.

A folder becomes the config of the layers that it has, with a canvas: by that vLLM knows a diffusion
model. Imported in vLLM's processes, and where its commands are tried.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from transformers import AutoConfig, LlamaConfig, PretrainedConfig, Qwen2Config, Qwen3Config

from weft.decoding.diffusion.models.families import FAMILIES
from weft.decoding.diffusion.models.family import Body, Family
from weft.decoding.diffusion.models.fields import CONFIG, Fields
from weft.decoding.diffusion.models.shape import config_of
from weft.serving.vllm.diffusion.architectures import ARCHITECTURES, CANVAS

_LONGEST: Final = 4096
_BASES: Final = {"llama": LlamaConfig, "qwen2": Qwen2Config, "qwen3": Qwen3Config}


def teach_transformers() -> None:
    """Register the published model types. Harmless when repeated."""
    for family in FAMILIES:
        if family.body is not None:
            kind = _config_class(family, family.body)
            AutoConfig.register(family.model_type, kind, exist_ok=True)


def _config_class(family: Family, body: Body) -> type[PretrainedConfig]:
    def from_dict(
        _cls: type[PretrainedConfig], /, config_dict: dict[str, Any], **given: Any
    ) -> Any:
        returns = given.pop("return_unused_kwargs", False)
        fields = Fields(Path(str(given.get("name_or_path", ""))) / CONFIG, config_dict)
        config = config_of(fields, family, body)
        config.architectures = [ARCHITECTURES[body]]
        block = family.block
        if family.block_key in fields:
            block = fields.whole(family.block_key, 1, _LONGEST)
        config.canvas_length = fields.whole("canvas_length", 1, _LONGEST, block or CANVAS)
        config.eos_token_id = config_dict.get("eos_token_id")
        return (config, given) if returns else config

    members = {"model_type": family.model_type, "from_dict": classmethod(from_dict)}
    return type(f"{family.model_type}Config".replace("-", "_"), (_BASES[body],), members)
