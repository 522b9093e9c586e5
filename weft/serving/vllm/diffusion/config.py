"""Configuration of canvases: vLLM's, and that of transformers for published folders.

A folder gets the config of its kind of layers plus a canvas length, by which vLLM recognises a
diffusion model. Imported in vLLM's processes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from transformers import AutoConfig, LlamaConfig, PretrainedConfig, Qwen2Config, Qwen3Config

from weft.core.errors import WeftError
from weft.decoding.config_fields import CONFIG, ConfigFields
from weft.decoding.diffusion.models.architecture import config_of
from weft.decoding.diffusion.models.families import FAMILIES, LayerKind, ModelFamily
from weft.decoding.diffusion.models.folder import describe
from weft.serving.extra_arguments import DECODE
from weft.serving.vllm.diffusion import ARCHITECTURES, CANVAS
from weft.serving.vllm.diffusion.decoder import (
    ServedCanvas,
    decoder_request_of,
    served_as,
    served_config,
)

_MOST_ROWS: Final = 8
"""Default bound of requests at once: a pass needs [requests, canvas, vocabulary] of float32."""
_USUAL_ROWS: Final = 128


class CanvasSetting:
    """vLLM's hook for an architecture (`VerifyAndUpdateConfig`)."""

    @staticmethod
    def verify_and_update_model_config(model_config: Any) -> None:
        """Does nothing."""

    @staticmethod
    def verify_and_update_config(vllm_config: Any) -> None:
        """Apply the settings of canvases. Raises: `ValueError` where canvases cannot run."""
        from vllm.config.diffusion import DiffusionConfig
        from vllm.platforms import current_platform

        model = vllm_config.model_config
        if current_platform.is_cpu():
            raise ValueError(
                "vLLM's diffusion path needs Triton, and so a GPU: on a CPU, weft's own engine runs"
                " this model (`use: local`)"
            )
        if vllm_config.diffusion_config is None:
            length = int(model.hf_config.canvas_length)
            vllm_config.diffusion_config = DiffusionConfig(canvas_length=length)
        width = int(vllm_config.diffusion_config.canvas_length)
        set_for_canvases(vllm_config)
        admit(served_as(describe(Path(model.model)), width, default_decoder(vllm_config)))


def default_decoder(vllm_config: Any) -> object:
    """The decoder that this server was started with, if any."""
    more = vllm_config.additional_config
    return more.get(DECODE) if isinstance(more, Mapping) else None


def set_for_canvases(vllm_config: Any) -> None:
    """Apply the settings without which answers would be wrong, each with its reason."""
    model, scheduler = vllm_config.model_config, vllm_config.scheduler_config
    model.enforce_eager = True  # graphs need a fixed number of pieces of attention
    vllm_config.attention_config.use_non_causal = True
    # a page of keys would be shared by texts that differ within its last block
    vllm_config.cache_config.enable_prefix_caching = False
    # the first tokens of a block would be read before its last
    scheduler.enable_chunked_prefill = False
    needed = max(scheduler.max_num_batched_tokens, model.max_model_len)
    scheduler.max_num_batched_tokens = needed
    if scheduler.max_num_seqs >= _USUAL_ROWS:
        scheduler.max_num_seqs = _MOST_ROWS


def admit(served: ServedCanvas) -> None:
    """Make this process refuse requests with a wrong decoder, by an error of vLLM's kind."""
    from vllm.exceptions import VLLMValidationError
    from vllm.v1.engine import input_processor

    installed = input_processor.validate_diffusion_sampling_params
    plain = getattr(installed, "plain", installed)

    def validate(params: Any, **named: Any) -> None:
        check(params, served, VLLMValidationError)
        plain(params, **named)

    validate.plain = plain  # type: ignore[attr-defined]
    input_processor.validate_diffusion_sampling_params = validate


def check(params: Any, served: ServedCanvas, refusal: Callable[..., Exception]) -> None:
    """Raise `refusal` for a request that cannot be decoded as requested."""
    try:
        served_config(decoder_request_of(params.extra_args, served.preset), served)
    except (WeftError, ValueError) as error:
        raise refusal(str(error), parameter="extra_args") from error
    if params.logprobs is not None or params.prompt_logprobs is not None:
        raise refusal("a canvas has no log-probabilities of a text", parameter="logprobs")
    if params.repetition_penalty != 1.0 or params.presence_penalty or params.frequency_penalty:
        raise refusal("a canvas knows no penalties", parameter="repetition_penalty")


_LONGEST: Final = 4096
_BASES: Final = {"llama": LlamaConfig, "qwen2": Qwen2Config, "qwen3": Qwen3Config}


def teach_transformers() -> None:
    """Register the published model types with transformers. Harmless when repeated."""
    for family in FAMILIES:
        if family.body in _BASES:
            kind = _config_class(family, family.body)
            AutoConfig.register(family.model_type, kind, exist_ok=True)


def _config_class(family: ModelFamily, body: LayerKind) -> type[PretrainedConfig]:
    def from_dict(
        _cls: type[PretrainedConfig], /, config_dict: dict[str, Any], **named: Any
    ) -> Any:
        returns = named.pop("return_unused_kwargs", False)
        fields = ConfigFields(Path(str(named.get("name_or_path", ""))) / CONFIG, config_dict)
        config = config_of(fields, family, body)
        config.architectures = [ARCHITECTURES[body]]
        block = family.block
        if family.block_key in fields:
            block = fields.whole(family.block_key, 1, _LONGEST)
        config.canvas_length = fields.whole("canvas_length", 1, _LONGEST, block or CANVAS)
        config.eos_token_id = config_dict.get("eos_token_id")
        return (config, named) if returns else config

    members = {"model_type": family.model_type, "from_dict": classmethod(from_dict)}
    return type(f"{family.model_type}Config".replace("-", "_"), (_BASES[body],), members)
