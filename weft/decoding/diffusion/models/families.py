"""The families of published models, as rows of a table.

LLaDA (arXiv 2502.09992), Dream (2508.15487), DiffuCoder (2506.20639), Dimple (2505.16990), SDAR
(2510.06303), Fast-dLLM v2 (2509.26328), LLaDA2 (2512.15745); Tiny-A2D is of the library dllm.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from weft.decoding.diffusion.adapter import Attention

LayerKind = Literal["llama", "qwen2", "qwen3", "glm4_moe"]
"""Whose layers a model has: transformers' class of that model type."""


@dataclass(frozen=True, slots=True)
class ModelFamily:
    """A family of published models: a row of the table.

    model_type   of config.json
    preset       its default decoder
    body         None: the class that transformers has for this model type, if it has one
    classes      names in its `architectures`, for folders whose model type says less
    keys         by transformers' name of a setting: the published one, where it differs
    only         settings that must have one of these values, if present
    tensors      (published, transformers') prefixes of weight names; N is any number
    ignored      prefixes of weight names that are left out
    trained      positions it was trained for, where its config claims more
    mask_token   its text in the tokenizer; `mask_id` where the folder does not have it
    end_tokens   their texts; `end_ids` where the folder does not have them
    block_key    of config.json; `block` where it is missing. 0: no blocks
    unreadable   tokens of a prompt for inputs that are not read here: images
    refusal      why it is not run, if it never is
    """

    model_type: str
    preset: str
    body: LayerKind | None = None
    classes: tuple[str, ...] = ()
    keys: Mapping[str, str] = field(default_factory=dict)
    only: Mapping[str, tuple[object, ...]] = field(default_factory=dict)
    tensors: tuple[tuple[str, str], ...] = ()
    ignored: tuple[str, ...] = ()
    trained: int | None = None
    mask_token: str = "<|mask|>"  # noqa: S105 - a token of text
    mask_id: int | None = None
    end_tokens: tuple[str, ...] = ()
    end_ids: tuple[int, ...] = ()
    attention: Attention = "full"
    block_key: str = ""
    block: int = 0
    shifted: bool = False
    unreadable: tuple[str, ...] = ()
    refusal: str = ""

    def key(self, config: Container[str], name: str) -> str:
        """The published name of a setting; transformers' name where only that is present."""
        published = self.keys.get(name, name)
        return name if published not in config and name in config else published

    def renamed(self, name: str) -> str:
        """What transformers calls a published weight."""
        for pattern, replacement in self.patterns.items():
            name, found = re.subn(pattern, replacement, name)
            if found:
                break
        return name

    @property
    def patterns(self) -> dict[str, str]:
        """Regular expressions of published prefixes, and what replaces them."""
        return {
            "^" + re.escape(published).replace("N", r"(\d+)") + r"\.": ours.replace("N", r"\1")
            + "."
            for published, ours in self.tensors
        }


_BLOCK = "model.transformer.blocks.N."
_LAYER = "model.layers.N."
_PLAIN: Final = {"hidden_act": ("silu",), "use_sliding_window": (False,), "use_mrope": (False,)}
_QWEN_ENDS = ("<|endoftext|>", "<|im_end|>")
_VISION = ("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")

LLADA = ModelFamily(
    "llada",
    "llada",
    body="llama",
    classes=("LLaDAModelLM",),
    keys={
        "vocab_size": "embedding_size",
        "hidden_size": "d_model",
        "intermediate_size": "mlp_hidden_size",
        "num_hidden_layers": "n_layers",
        "num_attention_heads": "n_heads",
        "num_key_value_heads": "n_kv_heads",
        "max_position_embeddings": "max_sequence_length",
        "tie_word_embeddings": "weight_tying",
    },
    only={
        "block_type": ("llama",),
        "activation_type": ("silu",),
        "layer_norm_type": ("rms",),
        "layer_norm_with_affine": (True,),
        "bias_for_layer_norm": (False,),
        "attention_layer_norm": (False,),
        "input_emb_norm": (False,),
        "include_bias": (False,),
        "include_qkv_bias": (False,),
        "scale_logits": (False,),
        "rope": (True,),
        "alibi": (False,),
        "multi_query_attention": (False,),
        "clip_qkv": (),
        "block_group_size": (1,),
    },
    tensors=(
        ("model.transformer.wte", "model.embed_tokens"),
        ("model.transformer.ln_f", "model.norm"),
        ("model.transformer.ff_out", "lm_head"),
        (_BLOCK + "attn_norm", _LAYER + "input_layernorm"),
        (_BLOCK + "ff_norm", _LAYER + "post_attention_layernorm"),
        (_BLOCK + "q_proj", _LAYER + "self_attn.q_proj"),
        (_BLOCK + "k_proj", _LAYER + "self_attn.k_proj"),
        (_BLOCK + "v_proj", _LAYER + "self_attn.v_proj"),
        (_BLOCK + "attn_out", _LAYER + "self_attn.o_proj"),
        (_BLOCK + "ff_proj", _LAYER + "mlp.gate_proj"),  # silu(ff_proj(x)) * up_proj(x)
        (_BLOCK + "up_proj", _LAYER + "mlp.up_proj"),
        (_BLOCK + "ff_out", _LAYER + "mlp.down_proj"),
    ),
    mask_token="<|mdm_mask|>",  # noqa: S106 - a token of text
    mask_id=126336,
    end_tokens=("<|endoftext|>", "<|eot_id|>"),
    end_ids=(126081, 126348),
)

DREAM = ModelFamily(
    "Dream",
    "dream_entropy",
    body="qwen2",
    classes=("DreamModel",),
    only=_PLAIN,
    trained=2048,  # its config says 131072
    mask_id=151666,
    end_tokens=_QWEN_ENDS,
    end_ids=(151643, 151645),
    shifted=True,
)

DIMPLE = ModelFamily(
    "dimple",
    "dimple",
    body="qwen2",
    classes=("DimpleModel",),
    only={"hidden_act": ("silu",), "use_sliding_window": (False,)},
    ignored=("visual.", "model.visual."),
    mask_id=151666,
    end_tokens=_QWEN_ENDS,
    end_ids=(151643, 151645),
    shifted=True,
    unreadable=_VISION,
)

SDAR = ModelFamily(
    "sdar",
    "sdar",
    body="qwen3",
    classes=("SDARForCausalLM",),
    only=_PLAIN,
    mask_token="<|MASK|>",  # noqa: S106 - a token of text
    mask_id=151669,
    end_tokens=_QWEN_ENDS,
    end_ids=(151643, 151645),
    attention="block_causal",
    block_key="block_size",
    block=4,
)

FAST_DLLM_V2 = ModelFamily(
    "Fast_dLLM_Qwen",
    "fastdllm_v2",
    body="qwen2",
    classes=("Fast_dLLM_QwenForCausalLM",),
    only=_PLAIN,
    mask_token="|<MASK>|",  # noqa: S106 - a token of text
    mask_id=151665,
    end_tokens=("<|im_end|>",),
    end_ids=(151645,),
    attention="block_causal",
    block_key="bd_size",
    block=32,
    shifted=True,
)


def _a2d(body: LayerKind, name: str) -> ModelFamily:
    return ModelFamily(
        f"a2d-{body}",
        "threshold",
        body=body,
        classes=(name,),
        only=_PLAIN,
        end_tokens=_QWEN_ENDS,
        block_key="block_size",
    )


A2D = (
    _a2d("llama", "A2DLlamaLMHeadModel"),
    _a2d("qwen2", "A2DQwen2LMHeadModel"),
    _a2d("qwen3", "A2DQwen3LMHeadModel"),
)

LLADA2 = ModelFamily(
    "llada2_moe",
    "llada2",
    body="glm4_moe",
    classes=("LLaDA2MoeModelLM",),
    only={
        "hidden_act": ("silu",),
        "use_sliding_window": (False,),
        "use_qkv_bias": (False,),
        "use_bias": (False,),
        "use_qk_norm": (True,),
        "norm_head": (False,),
        "norm_softmax": (False,),
        "norm_topk_prob": (True,),
        "score_function": ("sigmoid",),
        "moe_router_enable_expert_bias": (True,),
        "router_dtype": ("fp32",),
        "tie_word_embeddings": (False,),
        "image_token_offset": (),  # LLaDA2-Uni's, which also draws
    },
    mask_id=156895,
    end_tokens=("<|endoftext|>", "<|role_end|>"),
    end_ids=(156892,),
    attention="block_causal",
    block_key="block_size",
    block=32,
)

MIXTURES = (
    ModelFamily(
        "lladamoe",
        "llada",
        classes=("LLaDAMoEModelLM", "LLaDAMoEModel"),
        mask_id=156895,
        end_tokens=("<|endoftext|>", "<|role_end|>"),
        end_ids=(156892,),
    ),
    ModelFamily(
        "sdar_moe",
        "sdar",
        classes=("SDARMoeForCausalLM",),
        mask_id=151669,
        end_tokens=_QWEN_ENDS,
        end_ids=(151643, 151645),
        attention="block_causal",
        block_key="block_size",
        block=4,
    ),
)

REFUSED = (
    ModelFamily(
        "diffusion_gemma",
        "uniform_state",
        classes=("DiffusionGemmaForBlockDiffusion",),
        attention="causal_encoder",
        refusal="vLLM serves it by itself, on a GPU: `weft serve FOLDER`",
    ),
    ModelFamily(
        "nemotron_labs_diffusion",
        "threshold",
        classes=("NemotronLabsDiffusionModel",),
        attention="block_causal",
        block=32,
        refusal="it comes with code of its own, which weft never runs",
    ),
)

FAMILIES: Final = (LLADA, DREAM, DIMPLE, SDAR, FAST_DLLM_V2, LLADA2, *A2D, *MIXTURES, *REFUSED)

OURS: Final = {
    "llama": ModelFamily("llama", "threshold", body="llama", only={"hidden_act": ("silu",)}),
    "qwen2": ModelFamily("qwen2", "threshold", body="qwen2", only={"hidden_act": ("silu",)}),
    "qwen3": ModelFamily("qwen3", "threshold", body="qwen3", only={"hidden_act": ("silu",)}),
}
"""Models in weft's own format: a transformers folder whose config has `weft_diffusion`."""


def family_of(model_type: str, classes: tuple[str, ...]) -> ModelFamily | None:
    """The family of that model type, else of one of these architectures."""
    for family in FAMILIES:
        if family.model_type == model_type:
            return family
    for family in FAMILIES:
        if set(family.classes) & set(classes):
            return family
    return None
