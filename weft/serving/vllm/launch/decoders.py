"""Decoders of vLLM: their text form, and their arguments.

`weft` is weft's own proposer, which vLLM loads as a custom class.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from types import MappingProxyType

from weft.core.errors import SpecError
from weft.core.values import AUTOREGRESSIVE, DecodeSpec, Lossless, Lossy
from weft.decoding.diffusion.catalogue import NAMES, parse_diffusion
from weft.decoding.options import Option, read_value
from weft.serving.vllm.drafting.settings import KEY, OPTIONS, settings_from
from weft.serving.vllm.launch.drafts import draft_tokens
from weft.serving.vllm.launch.engine import Engine, native
from weft.serving.vllm.launch.weights import ModelWeights

TOKENS = "num_speculative_tokens"
OURS = "weft"
PROPOSER = "weft.serving.vllm.plugin.proposer.WeftProposer"
_METRICS = "--per-request-spec-decode-metrics"
_NGRAM = ("prompt_lookup_max", "prompt_lookup_min")
_DRAFT = ("draft_tensor_parallel_size", "draft_sample_method", "quantization", "revision")


@dataclass(frozen=True, slots=True)
class VllmDecoder:
    """A drafting method.

    model        description of the draft's `model`; empty: it has none
    options      its options, besides the number of tokens
    tokens       default number of tokens per draft; None: from the draft's own config
    not_on_cpu   why it does not run on a CPU; empty: it does
    """

    model: str = ""
    options: tuple[str, ...] = ()
    tokens: int | None = None
    not_on_cpu: str = ""


METHODS: Mapping[str, VllmDecoder] = MappingProxyType(
    {
        "ngram": VllmDecoder(options=_NGRAM, tokens=4),
        "ngram_gpu": VllmDecoder(
            options=_NGRAM, tokens=4, not_on_cpu="it matches on a GPU; `ngram` does the same here"
        ),
        "suffix": VllmDecoder(
            options=(
                "suffix_decoding_max_tree_depth",
                "suffix_decoding_max_cached_requests",
                "suffix_decoding_max_spec_factor",
                "suffix_decoding_min_token_prob",
            ),
        ),
        "draft_model": VllmDecoder("a smaller model of the same vocabulary", _DRAFT, tokens=4),
        "medusa": VllmDecoder("Medusa heads", _DRAFT, tokens=4),
        "eagle": VllmDecoder("an EAGLE head", _DRAFT, tokens=4),
        "eagle3": VllmDecoder("an EAGLE-3 head", _DRAFT, tokens=4),
        "mtp": VllmDecoder(options=_DRAFT, tokens=1),
        "mlp_speculator": VllmDecoder(
            "an MLP speculator",
            _DRAFT,
            not_on_cpu="vLLM's model runner for CPUs has no branch for it",
        ),
        "dflash": VllmDecoder("a DFlash drafter", _DRAFT, not_on_cpu="it needs a GPU's attention"),
        "dspark": VllmDecoder(
            "a DSpark drafter", _DRAFT, not_on_cpu="it needs Model Runner V2, and so Triton"
        ),
        "custom_class": VllmDecoder("module.Class of a proposer", tokens=4),
        OURS: VllmDecoder(options=OPTIONS, tokens=8),
    }
)


def parse_speculative(text: str) -> DecodeSpec:
    """The decoder in its text form: `METHOD[:MODEL][:TOKENS][,option=value]...`.

    `autoregressive`, `ngram:4`, `ngram:4,prompt_lookup_max=3`, `draft_model:NAME:5`, `mtp`.
    Raises: `SpecError` for anything else, with the list of vLLM's decoders.
    """
    head, *pairs = text.strip().split(",")
    name, *words = head.split(":")
    if name in ("autoregressive", "none"):
        if words or pairs:
            raise SpecError(f"the decoder {name!r} takes no options")
        return AUTOREGRESSIVE
    method = _method(name)
    options: dict[str, Option] = {}
    if method.model and words:
        options["model"] = words.pop(0)
    if words:
        options[TOKENS] = _number(name, words.pop(0))
    if words:
        raise SpecError(f"the decoder {text!r} has too many parts", hint=_form(name, method))
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise SpecError(f"the decoder's option {pair!r} has no value", hint="write name=value")
        options[key.strip()] = read_value(value.strip())
    spec = Lossless(name, tuple(options.items()))
    _check(spec, method)
    return spec


def speculative_arguments(
    decode: DecodeSpec, engine: Engine, draft: ModelWeights | None = None
) -> list[str]:
    """The arguments for `decode` with its `draft` model; none for plain decoding.

    Raises: `SpecError` where vLLM, the installed version, or vLLM on this platform does not have
    that decoder, or cannot load the draft's folder.
    """
    if decode.method in NAMES:
        raise SpecError(
            f"the decoder {decode.method!r} is for diffusion models",
            hint=f"for models that write on there are: {_list()}",
        )
    if isinstance(decode, Lossy):
        raise SpecError(
            f"vLLM cannot decode with {decode.method!r}, which may change the output: "
            "all its decoders keep the model's distribution",
            hint=f"a lossless one: {_list()}",
        )
    if decode.method == AUTOREGRESSIVE.method:
        if decode.options:
            raise SpecError(f"the decoder {decode.method!r} takes no options")
        return []
    method = _method(decode.method)
    if engine.platform == "cpu" and method.not_on_cpu:
        raise SpecError(f"{decode.method!r} does not run on a CPU: {method.not_on_cpu}")
    _check(decode, method)
    if decode.method == "suffix" and find_spec("arctic_inference") is None:
        raise SpecError(
            "`suffix` needs a library that is not here", hint="pip install arctic-inference"
        )
    options: dict[str, Option] = {}
    tokens = draft_tokens(decode.method, draft.folder if draft else None) or method.tokens
    if tokens is not None:
        options[TOKENS] = tokens
    options |= dict(decode.options)
    if draft is not None:
        options["model"] = draft.argument
    return [*_config(decode.method, options, engine), *_metrics(engine)]


def _config(name: str, options: dict[str, Option], engine: Engine) -> list[str]:
    config: dict[str, Option] = {"method": name, **options}
    more: list[str] = []
    if name == OURS:
        ours = {key: value for key, value in options.items() if key in OPTIONS}
        config = {"method": "custom_class", TOKENS: options[TOKENS], "model": PROPOSER}
        if ours:
            more = ["--additional-config", _json({KEY: ours})]
    _refuse_unknown(name, config, engine)
    return ["--speculative-config", _json(config), *more]


def _metrics(engine: Engine) -> list[str]:
    """Add counts of drafts to every answer, if this version can."""
    return [_METRICS, "detailed"] if _METRICS in engine.flags else []


def _refuse_unknown(name: str, config: Mapping[str, Option], engine: Engine) -> None:
    """Raises: `SpecError` for a config that the installed vLLM's source shows to be invalid."""
    here = native()
    if here is None:
        return
    version = f"{engine.distribution} {engine.version}"
    if config["method"] not in here.methods:
        there = ", ".join(known for known in METHODS if known in here.methods)
        raise SpecError(f"{version} has no decoder {name!r}", hint=f"it has: {there}")
    lacking = sorted(config.keys() - here.options)
    if lacking:
        raise SpecError(f"{version} knows no {', '.join(lacking)} for {name!r}")


def _json(config: Mapping[str, object]) -> str:
    return json.dumps(config, separators=(",", ":"))


def _method(name: str) -> VllmDecoder:
    if name not in METHODS:
        raise SpecError(f"vLLM has no decoder {name!r}", hint=f"there are: {_list()}")
    return METHODS[name]


def _check(decode: Lossless, method: VllmDecoder) -> None:
    allowed = {TOKENS, *method.options, *(("model",) if method.model else ())}
    for key, value in decode.options:
        if key not in allowed:
            listed = ", ".join(sorted(allowed))
            raise SpecError(f"{decode.method!r} has no option {key!r}", hint=f"it has: {listed}")
        if key == TOKENS and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise SpecError(f"{decode.method!r} drafts {value!r} tokens", hint="draft 1 or more")
    if decode.method == OURS:
        try:
            settings_from({key: value for key, value in decode.options if key != TOKENS})
        except ValueError as error:
            raise SpecError(f"the decoder {OURS!r}: {error}") from None
    if method.model and not dict(decode.options).get("model"):
        raise SpecError(
            f"{decode.method!r} needs {method.model}", hint=_form(decode.method, method)
        )


def _form(name: str, method: VllmDecoder) -> str:
    return f"write {name}{':MODEL' if method.model else ''}:TOKENS"


def _list() -> str:
    return ", ".join(("autoregressive", *METHODS))


def _number(name: str, word: str) -> int:
    try:
        return int(word)
    except ValueError:
        form = _form(name, METHODS[name])
        raise SpecError(f"{word!r} is no number of tokens", hint=form) from None


def parse_decode(text: str) -> DecodeSpec:
    """A decoder of vLLM, or one of a diffusion model, in text form.

    Raises: `SpecError`.
    """
    name = text.partition(",")[0].partition(":")[0].strip()
    return parse_diffusion(text) if name in NAMES else parse_speculative(text)
