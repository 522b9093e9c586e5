"""From a request to a row that can run: checked, templated, tokenised, its grammar compiled.

Foreign text and schemas come in here; what does not fit is refused with the reason.
"""

from __future__ import annotations

import math
from typing import TypeVar

from weft.core.errors import ModelRequestError
from weft.core.ports.model import ModelRequest, Sampling
from weft.serving.local.answer import Answer
from weft.serving.local.grammar import Grammar, GrammarCompiler
from weft.serving.local.network import Habits
from weft.serving.local.options import LocalOptions
from weft.serving.local.row import Limits, Row
from weft.serving.local.sampler import Sampler
from weft.serving.local.ticket import Ticket
from weft.serving.local.vocabulary import Vocabulary

T = TypeVar("T")
_EXTRA = frozenset({"ignore_eos"})


class Intake:
    """Makes rows for one model. `context_tokens` bounds prompt and answer together."""

    def __init__(
        self, vocabulary: Vocabulary, habits: Habits, context_tokens: int, options: LocalOptions
    ) -> None:
        self._vocabulary = vocabulary
        self._habits = habits
        self._context_tokens = context_tokens
        self._default_max_tokens = options.default_max_tokens
        self._grammars = GrammarCompiler(vocabulary, options)

    def row(self, ticket: Ticket) -> Row:
        """Raises: `ModelRequestError` for a request that this model cannot answer as it is."""
        request = ticket.request
        _check(request)
        prompt = self._prompt(request)
        sampling = request.sampling
        habits = self._habits
        temperature = _given(sampling.temperature, habits.temperature)
        ignore_end = bool(request.extra.get("ignore_eos", False))
        wanted = _given(sampling.max_tokens, self._default_max_tokens)
        return Row(
            ticket,
            prompt,
            Limits(
                max_tokens=min(wanted, self._context_tokens - len(prompt)),
                end_ids=frozenset() if ignore_end else self._vocabulary.end_ids,
                stop_ids=frozenset(sampling.stop_token_ids),
            ),
            Sampler(
                temperature,
                _given(sampling.top_p, habits.top_p),
                _given(sampling.top_k, habits.top_k),
                sampling.seed,
            ),
            Answer(self._vocabulary.bytes_of, sampling.stop),
            self._grammar(request),
            repeatable=temperature == 0.0 or sampling.seed is not None,
        )

    def _grammar(self, request: ModelRequest) -> Grammar | None:
        if request.schema is not None:
            return self._grammars.start(request.schema)
        return None if request.grammar is None else self._grammars.read(request.grammar)

    def _prompt(self, request: ModelRequest) -> list[int]:
        prompt = list(request.prompt_token_ids)
        prompt = prompt or self._vocabulary.encode_chat(request.messages, request.continues)
        strange = [token for token in prompt if not 0 <= token < self._vocabulary.size]
        if strange:
            raise ModelRequestError(
                f"token {strange[0]} is outside the vocabulary of {self._vocabulary.size}"
            )
        if len(prompt) >= self._context_tokens:
            raise ModelRequestError(
                f"the prompt has {len(prompt)} tokens; with an answer it must fit into"
                f" {self._context_tokens}",
                hint="shorten the prompt or split it over several calls",
            )
        return prompt


def _given(value: T | None, default: T) -> T:
    return default if value is None else value


def _check(request: ModelRequest) -> None:
    _check_sampling(request.sampling)
    stops = request.sampling.stop or request.sampling.stop_token_ids
    if (request.schema is not None or request.grammar is not None) and stops:
        raise ModelRequestError(
            "a schema or grammar and stop strings or tokens exclude one another",
            hint="it already says where the answer ends",
        )
    unknown = sorted(set(request.extra) - _EXTRA)
    if unknown:
        raise ModelRequestError(
            f"a local model does not know extra {unknown[0]!r}", hint=f"it knows {sorted(_EXTRA)}"
        )


def _check_sampling(sampling: Sampling) -> None:
    temperature = _given(sampling.temperature, 0.0)
    wrong = {
        "max_tokens": _given(sampling.max_tokens, 1) < 1,
        "temperature": not (math.isfinite(temperature) and temperature >= 0.0),
        "top_p": not 0.0 < _given(sampling.top_p, 1.0) <= 1.0,
        "top_k": _given(sampling.top_k, 0) < 0,
        "stop": "" in sampling.stop,
    }
    for name, is_wrong in wrong.items():
        if is_wrong:
            raise ModelRequestError(f"{name} cannot be {getattr(sampling, name)!r}")
