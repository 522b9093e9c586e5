"""The options of a local model, and the requests that a diffusion model refuses. Loads no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

from weft.core.errors import CapabilityError
from weft.core.ports.model import TEMPLATE_KWARGS, ModelRequest, template_kwargs
from weft.core.values import AUTOREGRESSIVE, DecodeSpec
from weft.decoding.network.options import NetworkOptions, check_size
from weft.serving.text.reasoning_forms import ReasoningStyle

if TYPE_CHECKING:
    from weft.decoding.diffusion.guard.moderation import Moderator
    from weft.decoding.diffusion.guard.priors import PriorLimits
    from weft.decoding.diffusion.ports import OutputGuard


EXTRA_FIELDS = frozenset({"ignore_eos", TEMPLATE_KWARGS})
"""Further fields of requests that local models honour."""


@dataclass(frozen=True, slots=True)
class LocalOptions(NetworkOptions):
    """Settings of one local model, in addition to those of its network.

    max_batch: requests decoded together; the others queue by priority, then in order of arrival.
    default_max_tokens: the length of an answer by default.
    prefill_tokens: prompt tokens read per step, so that a long prompt does not delay running
    answers.
    cache_tokens: rows of the batch times the longest of them may not exceed this; a single request
    always fits.
    decode: the decoder of requests that name none (see `weft.decoding.speculative.presets`).
    group_wait_s: how long a worker of concurrent attention waits for the others of its group.
    canvas_tokens: the first slots of a diffusion model's answer, which grows by as many each time,
    up to max_tokens.
    moderator: judges prompt and answer of a diffusion model as one text, block by block, before a
    block is shown; `guards` review the same as tokens.
    refusals: openings of refusals. A request with a schema or grammar to a diffusion model is
    refused where the model, without one, would begin with one of them, or say nothing.
    reasoning: the form of the model's thoughts (`weft.serving.text`), which then come as reasoning
    from chat requests without schema and grammar; auto: as its chat template shows; none: as text.
    priors: limits on the names and listed values of schemas to a diffusion model, which are in its
    answer before it has written any of it. None: callers are trusted.
    chat_template_kwargs: variables of the chat template in every prompt, such as `enable_thinking`.
    max_string_chars, max_items: bounds added to strings and arrays of a schema without any, so that
    a small model cannot write one for ever. None: no bounds.

    Raises: `ValueError` for sizes below one and times that are not above zero, `TypeError` for
    sizes that are no whole numbers.
    """

    max_batch: int = 32
    default_max_tokens: int = 512
    prefill_tokens: int = 256
    cache_tokens: int = 65_536
    max_string_chars: int | None = None
    max_items: int | None = None
    decode: DecodeSpec = AUTOREGRESSIVE
    group_wait_s: float = 30.0
    canvas_tokens: int = 64
    moderator: Moderator | None = None
    guards: tuple[OutputGuard, ...] = ()
    refusals: tuple[str, ...] = ()
    priors: PriorLimits | None = None
    chat_template_kwargs: Mapping[str, Any] = field(default_factory=dict, hash=False)
    reasoning: ReasoningStyle | Literal["auto", "none"] = "auto"

    def __post_init__(self) -> None:
        NetworkOptions.__post_init__(self)  # `slots` makes another class: no bare super()
        sizes = {
            "max_batch": self.max_batch,
            "default_max_tokens": self.default_max_tokens,
            "prefill_tokens": self.prefill_tokens,
            "cache_tokens": self.cache_tokens,
            "max_string_chars": self.max_string_chars,
            "max_items": self.max_items,
            "canvas_tokens": self.canvas_tokens,
        }
        for name, size in sizes.items():
            check_size(name, size)
        if not all(self.refusals):
            raise ValueError("a refusal that begins with nothing")
        styles = ("auto", "none", *get_args(ReasoningStyle))
        if self.reasoning not in styles:
            raise ValueError(f"reasoning is one of {', '.join(styles)}, not {self.reasoning!r}")
        template_kwargs({TEMPLATE_KWARGS: self.chat_template_kwargs})
        wait: object = self.group_wait_s  # from a file it may be anything
        if not isinstance(wait, int | float) or not wait > 0:
            raise ValueError(f"group_wait_s must be above 0, not {self.group_wait_s!r}")


def check_diffusion_request(request: ModelRequest) -> None:
    """Raises: `CapabilityError` for what is undefined where tokens come in any order."""
    wrong = {
        "tools": (bool(request.tools), "ask for JSON with a schema"),
        "logprobs": (
            request.logprobs or request.top_logprobs > 0,
            "a token that is filled in has no probability given the text before it",
        ),
        "a placement": (bool(request.placement), "give the prompt as one stretch"),
        "concurrent attention": (
            request.attention is not None,
            "run its workers as requests of their own, or use a model that writes on",
        ),
    }
    for name, (is_requested, hint) in wrong.items():
        if is_requested:
            raise CapabilityError(f"a diffusion model does not take {name}", hint=hint)
