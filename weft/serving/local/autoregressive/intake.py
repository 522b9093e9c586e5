"""Makes rows from requests: checks, templates, tokenizes, compiles the grammar.

Refuses unusable text and schemas with a reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.core.errors import ModelRequestError
from weft.core.ports.model import ModelRequest
from weft.core.schema import closed
from weft.core.values import AUTOREGRESSIVE, DecodeSpec
from weft.decoding.network.network import ModelGenerationConfig
from weft.decoding.network.segments import shares_steps
from weft.decoding.network.visibility import Placement
from weft.decoding.sampling import CounterRng
from weft.decoding.speculative.drafter import DraftRequest
from weft.decoding.speculative.speculation import SpeculativeSequence
from weft.decoding.worker_steps import WorkerSteps
from weft.serving.local.answer import AnswerText
from weft.serving.local.autoregressive.row import AnswerLimits, AnswerRow
from weft.serving.local.autoregressive.token_choice import TokenChooser
from weft.serving.local.autoregressive.worker_group import GroupWorker
from weft.serving.local.grammar import AnswerGrammar, GrammarCompiler
from weft.serving.local.options import LocalOptions
from weft.serving.local.request import (
    check_request,
    or_default,
    prompt_of,
    room_after,
    sampling_params,
    seed_of,
)
from weft.serving.local.ticket import Ticket
from weft.serving.local.vocabulary import Vocabulary

Speculate = Callable[[DecodeSpec, DraftRequest], SpeculativeSequence | None]
"""The drafts of one sequence by the requested decoder; None: plain decoding."""
_Beginning = tuple[list[int], list[int], list[int]]


class Intake:
    """Makes rows for one model. `context_tokens` bounds prompt and answer together."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        generation_config: ModelGenerationConfig,
        context_tokens: int,
        options: LocalOptions,
        speculate: Speculate,
    ) -> None:
        self._vocabulary = vocabulary
        self._speculate = speculate
        self._generation_config = generation_config
        self._context_tokens = context_tokens
        self._default_max_tokens = options.default_max_tokens
        self._grammars = GrammarCompiler(vocabulary, options)

    def row(self, ticket: Ticket) -> AnswerRow:
        """The row of a request. Raises: `ModelRequestError` where this model cannot answer it."""
        request = ticket.request
        _check(request)
        prompt = prompt_of(request, self._vocabulary, self._context_tokens)
        if not request.placement:
            return self._row(ticket, prompt, self._room(len(prompt)))
        placement = Placement(request.placement)
        return self._row(ticket, prompt, self._room(placement.next_position), placement=placement)

    def workers(self, tickets: Sequence[Ticket]) -> list[GroupWorker]:
        """The workers of one group, in order. Raises: as `row` does."""
        begun = [self._beginning(ticket.request) for ticket in tickets]
        longest = max(sum(map(len, parts)) for parts in begun)
        widest = max(len(own) for *_, own in begun)
        share = self._room(longest + (len(begun) - 1) * widest) // len(begun)
        return [
            self._worker(ticket, parts, share) for ticket, parts in zip(tickets, begun, strict=True)
        ]

    def _worker(self, ticket: Ticket, parts: _Beginning, max_tokens: int) -> GroupWorker:
        attention = ticket.request.attention
        assert attention is not None
        encode = self._vocabulary.encode_plain
        steps = WorkerSteps(
            self._vocabulary.bytes_of,
            lambda number: encode(attention.opening.replace("{step}", str(number))),
            encode(attention.nudge),
            attention.nudge_tokens,
            shared=shares_steps(attention.layout),
        )
        prompt = [token for part in parts for token in part]
        row = self._row(ticket, prompt, max_tokens, steps=steps)
        if len(row.tokens) - row.prompt_tokens >= row.limits.max_tokens:
            raise ModelRequestError(
                f"worker {attention.index} may write {row.limits.max_tokens} tokens, which its"
                " opening fills",
                hint="raise max_tokens, or shorten the prompt",
            )
        lengths = map(len, parts)
        return GroupWorker(attention.index, row, steps, *lengths)

    def _beginning(self, request: ModelRequest) -> _Beginning:
        """What a worker reads before it writes: the prompt, `others` and `own`."""
        assert request.attention is not None
        _check(request)
        encode = self._vocabulary.encode_plain
        others, own = encode(request.attention.others), encode(request.attention.own)
        return prompt_of(request, self._vocabulary, self._context_tokens), others, own

    def _row(
        self,
        ticket: Ticket,
        prompt: list[int],
        max_tokens: int,
        *,
        placement: Placement | None = None,
        steps: WorkerSteps | None = None,
    ) -> AnswerRow:
        """A row that writes at most `max_tokens` tokens."""
        request = ticket.request
        sampling = request.sampling
        params = sampling_params(sampling, self._generation_config)
        seed = seed_of(sampling)
        grammar = self._grammar(request)
        speculation = None
        if steps is None:
            speculation = self._speculate(
                request.decode, DraftRequest(params, seed, _label(request))
            )
        ignore_end = bool(request.extra.get("ignore_eos", False))
        return AnswerRow(
            ticket,
            prompt,
            AnswerLimits(
                max_tokens=min(
                    or_default(sampling.max_tokens, self._default_max_tokens), max_tokens
                ),
                end_ids=frozenset() if ignore_end else self._vocabulary.end_ids,
                stop_ids=frozenset(sampling.stop_token_ids),
            ),
            TokenChooser(
                params,
                CounterRng(seed),
                grammar,
                steps.follow if steps is not None else None,
                samples_all=request.logprobs or request.top_logprobs > 0,
            ),
            AnswerText(self._vocabulary.bytes_of, sampling.stop),
            grammar,
            repeatable=params.greedy or sampling.seed is not None,
            speculation=speculation,
            placement=placement,
            forced_first=steps.begin() if steps is not None else (),
        )

    def _room(self, tokens: int) -> int:
        """The number of tokens left in the context."""
        return room_after(tokens, self._context_tokens)

    def _grammar(self, request: ModelRequest) -> AnswerGrammar | None:
        if request.schema is not None:
            return self._grammars.start(closed(request.schema))
        return None if request.grammar is None else self._grammars.read(request.grammar)


def _label(request: ModelRequest) -> str:
    return "" if request.program is None else request.program.node


def _check(request: ModelRequest) -> None:
    check_request(request)
    _check_attention(request)


def _check_attention(request: ModelRequest) -> None:
    attention = request.attention
    if attention is None:
        return
    wrong = {
        "a placement": bool(request.placement),
        f"the decoder {request.decode.method!r}": request.decode != AUTOREGRESSIVE,
        "a schema or grammar": request.schema is not None or request.grammar is not None,
        "logprobs": (request.logprobs or request.top_logprobs > 0)
        and bool(attention.opening or attention.nudge),
    }
    for name, is_wrong in wrong.items():
        if is_wrong:
            raise ModelRequestError(
                f"{name} and concurrent attention exclude one another",
                hint="openings and nudges are not drawn" if name == "logprobs" else "",
            )
