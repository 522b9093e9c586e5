"""One request while it runs: its tokens, how its next one is chosen, and when it ends.

Knows nothing of the batch around it.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.core.errors import ModelOutputError
from weft.core.ports.model import Prefilled
from weft.core.values import Completion, FinishReason, Usage
from weft.decoding.concurrent.placement import Placement
from weft.decoding.concurrent.steps import Steps
from weft.serving.local.answer import Answer, Drawn
from weft.serving.local.grammar import Grammar
from weft.serving.local.sampler import Sampler
from weft.serving.local.slots import Slot
from weft.serving.local.ticket import Ticket


@dataclass(frozen=True, slots=True)
class Limits:
    """When an answer ends at the latest, by itself, and by wish. `end_ids` may be empty."""

    max_tokens: int
    end_ids: frozenset[int]
    stop_ids: frozenset[int] = frozenset()


class Row:
    """`tokens` are the prompt and what has been written; `slot` holds those the model has read."""

    def __init__(
        self,
        ticket: Ticket,
        prompt: list[int],
        limits: Limits,
        sampler: Sampler,
        answer: Answer,
        grammar: Grammar | None,
        *,
        repeatable: bool,
        placement: Placement | None = None,
        steps: Steps | None = None,
    ) -> None:
        self.ticket = ticket
        self.tokens = prompt
        self.limits = limits
        self.prompt_tokens = len(prompt)
        self.slot: Slot | None = None
        self.reused = 0
        self.forwards = 0
        self.done = False
        self.placement = placement
        self._sampler = sampler
        self._answer = answer
        self._grammar = grammar
        self._repeatable = repeatable
        self._largest = ticket.request.top_logprobs
        self._wants_logprobs = ticket.request.logprobs or self._largest > 0
        self._cut = False  # forced tokens did not fit into max_tokens
        self._prefilled = False
        self._steps = steps
        for token in steps.begin() if steps is not None else ():
            self._take(Drawn(token))

    @property
    def most_tokens(self) -> int:
        """How many tokens this row can come to hold."""
        return self.prompt_tokens + self.limits.max_tokens

    def advance(self, logits: NDArray[np.float32], model: str) -> None:
        """Choose the next token, and hand on what there is to see. logits: [vocabulary]; changed.

        Raises: `ModelOutputError` when the answer ends inside its JSON, `ModelRequestError` when
        its schema turns out too complex.
        """
        if not self._prefilled:
            self.ticket.put(Prefilled(tuple(self.tokens[: self.prompt_tokens])))
            self._prefilled = True
        for drawn in self._next(logits):
            self._take(drawn)
            if self._ends(drawn.token) or self._answer.stopped is not None:
                break
        reason = self._ending()
        if reason is None:
            delta = self._answer.delta()
        else:
            self.done = True
            self._answer.finish()
            delta = self._answer.last_delta()
        if delta is not None:
            self.ticket.put(delta)
        if reason is not None:
            self._check_json(reason)
            self.ticket.put(self._completion(reason, model))

    def _take(self, drawn: Drawn) -> None:
        self.tokens.append(drawn.token)
        self._answer.add(drawn, silent=self._ends(drawn.token))

    def _next(self, logits: NDArray[np.float32]) -> list[Drawn]:
        """The drawn token, and those its grammar or its next step forces after it.

        Logprobs are the plain model's.

        Forced tokens are not looked at by the model before they are taken, so a request for
        logprobs draws them one by one.
        """
        plain = logits.copy() if self._wants_logprobs else logits
        if self._grammar is not None:
            self._grammar.restrict(logits)
        token = self._sampler.choose(logits)
        if self._grammar is not None:
            self._grammar.accept(token)
        first = _measured(token, plain, self._largest) if self._wants_logprobs else Drawn(token)
        forced = self._forced(token)
        room = self.limits.max_tokens - len(self._answer.token_ids) - 1
        self._cut = len(forced) > room
        return [first, *map(Drawn, forced[:room])]

    def _forced(self, token: int) -> list[int]:
        if self._steps is not None:
            return self._steps.follow(token)
        return [] if self._grammar is None or self._wants_logprobs else self._grammar.forced()

    def _ends(self, token: int) -> bool:
        return token in self.limits.end_ids or token in self.limits.stop_ids

    def _ending(self) -> FinishReason | None:
        if self._ends(self.tokens[-1]) or self._answer.stopped is not None:
            return "stop"
        if self._grammar is not None and self._grammar.finished and not self._cut:
            return "stop"
        return "length" if len(self._answer.token_ids) >= self.limits.max_tokens else None

    def _check_json(self, reason: FinishReason) -> None:
        if self._grammar is None or not self._grammar.is_json:
            return
        if reason == "length" and (self._cut or not self._grammar.complete):
            raise ModelOutputError(
                f"the answer reached max_tokens ({self.limits.max_tokens}) inside its JSON",
                hint="raise max_tokens, or give strings a maxLength and arrays a maxItems",
                retryable=not self._repeatable,
            )
        try:
            json.loads(self._answer.text, parse_float=_finite)
        except ValueError as error:
            raise ModelOutputError(
                f"the answer is not JSON: {error}", retryable=not self._repeatable
            ) from error

    def _completion(self, reason: FinishReason, model: str) -> Completion:
        token_ids = tuple(self._answer.token_ids)
        stop: str | int | None = self._answer.stopped
        if stop is None and self.tokens[-1] in self.limits.stop_ids:
            stop = self.tokens[-1]
        return Completion(
            text=self._answer.text,
            finish_reason=reason,
            token_ids=token_ids,
            logprobs=tuple(self._answer.logprobs),
            usage=Usage(
                prompt_tokens=self.prompt_tokens,
                completion_tokens=len(token_ids),
                cached_tokens=self.reused,
                requests=1,
                forwards=self.forwards,
            ),
            model=model,
            stop=stop,
            top_logprobs=tuple(self._answer.top_logprobs),
        )


def _measured(token: int, logits: NDArray[np.float32], most: int) -> Drawn:
    top = logits.max()
    whole = top + np.log(np.exp(logits - top).sum(dtype=np.float64))
    if not most:
        return Drawn(token, float(logits[token] - whole))
    largest = np.sort(np.partition(logits, -most)[-most:])[::-1]
    return Drawn(token, float(logits[token] - whole), tuple((largest - whole).tolist()))


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:40]} is too large for a number")
    return value
