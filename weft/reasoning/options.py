"""The limits of a strategy, in tokens and threads, and its checked settings."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from weft.core.errors import BuildError
from weft.core.ports import template_kwargs
from weft.core.suggestion import suggestion

_AT_LEAST = {"width": 1, "depth": 0, "rounds": 1, "max_tokens": 1, "answer_tokens": 1}


@dataclass(frozen=True, slots=True)
class ThinkOptions:
    """The limits and sampling parameters of one thought.

    `width`: parallel threads or samples, at most. `budget`: generated tokens in all, including
    those of cancelled threads; None: `cap`. `path_tokens`: generated tokens on the critical path,
    a thread's own and, at each fork, those of its longest child; None: no cap. `depth`: nested
    forks; `rounds`: forks in one thread, or rounds of a strategy that has rounds; `max_tokens`: of
    one thread or sample. `answer_tokens` of the budget, and of the path, are reserved for the
    answer. `settings`: the strategy's own. `top_p` to `reasoning_effort`: see `Sampling`.
    `extra_body`: further fields of each request, for servers. `thinking_tokens`: of the thought
    before each answer, on top of `max_tokens`, which then bounds the answer alone; 0: no thought;
    None: the model's own, within `max_tokens`. Calls for a step of a strategy never think where the
    model can do without.

    Raises: `ValueError` for what is out of range.
    """

    width: int = 8
    budget: int | None = None
    path_tokens: int | None = None
    depth: int = 2
    rounds: int = 8
    max_tokens: int = 1024
    answer_tokens: int = 512
    temperature: float = 0.7
    top_p: float | None = None
    seed: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    top_k: int | None = None
    min_p: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    repetition_penalty: float | None = None
    logit_bias: Mapping[str, float] | None = None
    reasoning_effort: str | None = None
    extra_body: Mapping[str, Any] | None = None
    thinking_tokens: int | None = None

    def __post_init__(self) -> None:
        for name, least in _AT_LEAST.items():
            if (value := getattr(self, name)) < least:
                raise ValueError(f"{name} must be at least {least}, got {value}")
        for name in ("budget", "path_tokens"):
            if (cap := getattr(self, name)) is not None and cap < 1:
                raise ValueError(f"{name} must be at least 1 token, got {cap}")
        if self.thinking_tokens is not None and self.thinking_tokens < 0:
            raise ValueError(f"thinking_tokens must not be negative, got {self.thinking_tokens}")
        if not self.temperature >= 0:
            raise ValueError(f"temperature must not be negative, got {self.temperature}")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise ValueError(f"top_p must be above 0 and at most 1, got {self.top_p}")

    @property
    def template_kwargs(self) -> dict[str, Any]:
        """The variables for the chat template: those of `extra_body`, and `reasoning_effort`.

        Raises: `ModelRequestError` when they are no mapping.
        """
        effort = (
            {} if self.reasoning_effort is None else {"reasoning_effort": self.reasoning_effort}
        )
        return {**effort, **template_kwargs(self.extra_body)}

    @property
    def cap(self) -> int:
        """The most tokens that may be generated: `budget`, or width * longest * rounds."""
        return self.budget or self.width * self.longest * self.rounds

    @property
    def longest(self) -> int:
        """The most tokens of one thread or sample, its thought included."""
        return self.max_tokens + (self.thinking_tokens or 0)

    @property
    def kept(self) -> int:
        """The tokens reserved for the answer: at most half of the budget and of the path."""
        return min(self.answer_tokens, self.cap // 2, self.kept_of_path)

    @property
    def kept_of_path(self) -> int:
        """The same, where the budget does not matter."""
        path = self.answer_tokens if self.path_tokens is None else self.path_tokens // 2
        return min(self.answer_tokens, path)

    def path_left(self, taken: int) -> int | None:
        """How many tokens may follow `taken` ones on the critical path; None: no cap."""
        return None if self.path_tokens is None else max(0, self.path_tokens - taken)


def read_settings(
    strategy: str,
    given: Mapping[str, Any],
    defaults: Mapping[str, Any],
    *,
    least: Mapping[str, int] | None = None,
    choices: Mapping[str, Collection[str]] | None = None,
) -> dict[str, Any]:
    """`defaults` updated with `given`. A value must be of the type of its default.

    A default of None takes anything; an int fits a float. `least`: the lowest values of
    numbers, `choices`: the values that a text may have.

    Raises: `BuildError` for a wrong value, or an unknown name: it lists the known ones.
    """
    for name, value in given.items():
        if name not in defaults:
            hint = suggestion(name, defaults, most=None) if defaults else "it takes none"
            raise BuildError(f"{strategy} has no setting {name!r}", hint=hint)
        kind = type(defaults[name])
        if not _fits(value, kind):
            wrong = f"{strategy}: setting {name!r} is {type(value).__name__}, not {kind.__name__}"
            raise BuildError(wrong, hint=f"for example {defaults[name]!r}")
    settings = {**defaults, **given}
    for name, low in (least or {}).items():
        if settings[name] < low:
            raise BuildError(f"{strategy}: {name} must be at least {low}, got {settings[name]}")
    for name, known in (choices or {}).items():
        if settings[name] not in known:
            hint = suggestion(settings[name], known, most=None)
            raise BuildError(f"{strategy} has no {name} {settings[name]!r}", hint=hint)
    return settings


def _fits(value: object, kind: type) -> bool:
    if kind is type(None):
        return True
    if kind is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
