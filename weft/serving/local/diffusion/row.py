"""One running request to a diffusion model: what of it is released, and when it ends.

Wraps its `DenoisingRow`, so that an error of a policy, a filter or a guard ends only this request.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from weft.core.errors import OutputTruncated
from weft.core.ports.model import Prefilled
from weft.core.schema import truncation_hint
from weft.core.values import Completion, Denoised, FinishReason, Usage
from weft.decoding.diffusion.denoising import DenoisingRow
from weft.decoding.diffusion.guard.moderation import RefusalQuery
from weft.decoding.diffusion.ports import Refusal
from weft.decoding.diffusion.query import Logits, Query
from weft.decoding.diffusion.structure.structure import Structure
from weft.serving.local.answer import AnswerText, SampledToken
from weft.serving.local.ticket import Ticket, converted

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CompletionLabels:
    """What a completion says of the model and the decoder: names, and whether it is lossless."""

    model: str
    method: str
    lossless: bool


class DiffusionRow:
    """A row of the batch. `begin` makes its canvas, in a row of the adapter's cache; `begin_probe`
    makes the probe that runs before it, in the same row.

    done         the request has its completion, or its error
    most_tokens  the most tokens it can have, its prompt included
    """

    def __init__(
        self,
        ticket: Ticket,
        prompt: Sequence[int],
        most_tokens: int,
        begin: Callable[[int], DenoisingRow],
        answer: AnswerText,
        labels: CompletionLabels,
        stop_ids: frozenset[int] = frozenset(),
        structure: Structure | None = None,
        *,
        begin_probe: Callable[[int], RefusalQuery] | None = None,
        repeatable: bool = False,
    ) -> None:
        self.ticket = ticket
        self.done = False
        self.number: int | None = None
        self.most_tokens = most_tokens
        self._prompt = tuple(prompt)
        self._begin = begin
        self._answer = answer
        self._labels = labels
        self._stop_ids = stop_ids
        self._structure = structure
        self._begin_probe = begin_probe
        self._probe: RefusalQuery | None = None
        self._repeatable = repeatable
        self._denoising: DenoisingRow | None = None
        self._prefilled = False

    @property
    def over(self) -> bool:
        return self.done

    def start(self, number: int) -> None:
        """Begin in row `number` of the cache."""
        self.number = number
        self._denoising = self._guarded(lambda: self._begin(number))
        if self._begin_probe is not None and not self.done:
            self._probe = self._begin_probe(number)
        else:
            self._report_if_running()  # there may be nothing to fill

    def queries(self) -> tuple[Query, ...]:
        """See `Denoises`; no queries if the request fails while they are made."""
        denoising, probe = self._denoising, self._probe
        if denoising is None:
            return ()
        if probe is not None:
            denoising.counters.count_pass((probe.query,), probe.query.kind)
            return (probe.query,)
        return self._guarded(denoising.queries) or ()

    def settle(self, answers: Sequence[Logits]) -> None:
        """See `Denoises`. Passes on the released text, and the completion."""
        denoising = self._denoising
        if denoising is None or not answers:
            return
        if self._probe is not None:
            refusal = self._probe.review(answers[0])
            self._probe = None
            if refusal is not None:
                self.done = True
                self.ticket.put(self._completion(denoising, "refused", 0, None, refusal))
                return
        else:
            self._guarded(lambda: denoising.settle(answers))
        self._report_if_running()

    def _guarded(self, work: Callable[[], T]) -> T | None:
        """The result of `work`; an error of it ends the request."""
        try:
            return work()
        except BaseException as error:  # noqa: BLE001 - the error of one row ends only that row
            self.done = True
            self.ticket.put(converted("the answer cannot be continued", error))
            return None

    def _report_if_running(self) -> None:
        denoising = self._denoising
        if denoising is not None and not self.done:
            self._guarded(lambda: self._report(denoising))

    def _report(self, denoising: DenoisingRow) -> None:
        if not self._prefilled and denoising.counters.passes:
            self.ticket.put(Prefilled(self._prompt))
            self._prefilled = True
        self._read(denoising)
        reason = self._ending(denoising)
        if reason is None:
            delta = self._answer.delta()
        else:
            self.done = True
            kept = len(self._answer.token_ids)
            stop = self._terminator(denoising)
            self._answer.finish()
            delta = self._answer.last_delta()
        if delta is not None:
            self.ticket.put(delta)
        if reason is not None:
            refusal = denoising.refusal if reason == "refused" else None
            completion = self._completion(denoising, reason, kept, stop, refusal)
            self._check_complete(reason, completion.usage)
            self.ticket.put(completion)

    def _ending(self, denoising: DenoisingRow) -> FinishReason | None:
        if self._answer.stopped is not None:
            return "stop"
        finish, structure = denoising.finish, self._structure
        if structure is None or finish not in ("stop", "length"):
            return finish
        if structure.over:  # also where nothing of it was open from the start
            return "stop" if structure.complete else "length"
        return finish

    def _check_complete(self, reason: FinishReason, usage: Usage) -> None:
        if self.ticket.request.schema is not None and reason == "length":
            error = OutputTruncated(
                "the answer reached max_tokens inside its JSON",
                hint=truncation_hint(self.ticket.request.schema),
                retryable=not self._repeatable,
            )
            error.usage = usage
            raise error

    def _read(self, denoising: DenoisingRow) -> None:
        """Take what was released since the last time, up to a stop text."""
        for token in denoising.kept[len(self._answer.token_ids) :].tolist():
            if self._answer.stopped is not None:
                return
            self._answer.add(SampledToken(token))

    def _terminator(self, denoising: DenoisingRow) -> str | int | None:
        """The stop text or token that ended the answer; a token is then the last of the ids."""
        canvas, end = denoising.canvas, denoising.end
        if self._answer.stopped is not None:
            return self._answer.stopped
        if denoising.finish == "stop" and end < canvas.length:
            token = int(canvas.ids[end])
            if token in self._stop_ids:
                self._answer.add(SampledToken(token), silent=True)
                return token
        return None

    def _completion(
        self,
        denoising: DenoisingRow,
        reason: FinishReason,
        kept: int,
        stop: str | int | None,
        refusal: Refusal | None,
    ) -> Completion:
        """The completion, in which `kept` tokens are the answer without its terminator."""
        counters, canvas = denoising.counters, denoising.canvas
        return Completion(
            text=self._answer.text,
            finish_reason=reason,
            token_ids=tuple(self._answer.token_ids),
            usage=Usage(
                prompt_tokens=len(self._prompt),
                completion_tokens=kept,
                requests=1,
                forwards=counters.forwards,
            ),
            model=self._labels.model,
            stop=stop,
            denoised=Denoised(
                method=self._labels.method,
                forwards=counters.forwards,
                kept=kept,
                discarded=max(0, counters.kept + counters.discarded - kept),
                query_tokens=counters.tokens,
                blocks=canvas.block + 1,
                edits=counters.edits,
                remasks=counters.remasks,
                by_kind=tuple(sorted(counters.passes.items())),
                lossless=self._labels.lossless,
            ),
            refusal="" if refusal is None else refusal.reason,
        )
