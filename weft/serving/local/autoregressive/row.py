"""One running request: its tokens, the choice of the next ones, and its end."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.core.errors import ModelOutputError, OutputTruncated
from weft.core.ports.model import Prefilled
from weft.core.schema import truncation_hint
from weft.core.values import Completion, FinishReason, Speculated, Usage
from weft.decoding.device_sampling import TokenDraws
from weft.decoding.network.logit_rows import LogitRows
from weft.decoding.network.visibility import Placement
from weft.decoding.speculative.acceptance import AcceptedPath, ExactMatch
from weft.decoding.speculative.draft import ROOT, DraftProposal, DraftTree
from weft.decoding.speculative.drafter import TargetOutputs
from weft.decoding.speculative.speculation import SpeculativeSequence
from weft.serving.local.answer import AnswerText, SampledToken
from weft.serving.local.autoregressive.slots import Slot
from weft.serving.local.autoregressive.token_choice import TokenChooser, certain
from weft.serving.local.grammar import AnswerGrammar
from weft.serving.local.ticket import Ticket


def admitted(draft: DraftProposal, following: Callable[[Sequence[int]], int]) -> DraftProposal:
    """`draft` without tokens that cannot follow; `following` counts the leading ones that can.

    Unchanged where candidates were drawn at random, since acceptance needs all of them, and where
    rows are attached to the tree.
    """
    tree = draft.tree
    if not len(tree) or tree.proposals or len(draft.aux):
        return draft
    kept: set[int] = set()
    for leaf in set(range(len(tree))) - set(tree.parents):
        path = tree.path(leaf)
        kept.update(path[: following([tree.tokens[node] for node in path])])
    if len(kept) == len(tree):
        return draft
    index = {ROOT: ROOT} | {node: at for at, node in enumerate(sorted(kept))}
    pruned = DraftTree(
        tuple(tree.tokens[node] for node in sorted(kept)),
        tuple(index[tree.parents[node]] for node in sorted(kept)),
    )
    return DraftProposal(pruned, source=draft.source)


@dataclass(frozen=True, slots=True)
class AnswerLimits:
    """The limits of an answer: its length, and the tokens that end it. `end_ids` may be empty."""

    max_tokens: int
    end_ids: frozenset[int]
    stop_ids: frozenset[int] = frozenset()


class AnswerRow:
    """A row of the batch. `tokens`: prompt and answer; `slot` has those the model has read."""

    def __init__(
        self,
        ticket: Ticket,
        prompt: list[int],
        limits: AnswerLimits,
        chooser: TokenChooser,
        answer: AnswerText,
        grammar: AnswerGrammar | None,
        *,
        repeatable: bool,
        speculation: SpeculativeSequence | None = None,
        placement: Placement | None = None,
        forced_first: Sequence[int] = (),
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
        self.speculation = speculation
        self.proposal_s = 0.0
        self._chooser = chooser
        self._answer = answer
        self._grammar = grammar
        self._repeatable = repeatable
        self._largest = ticket.request.top_logprobs
        self._wants_logprobs = ticket.request.logprobs or self._largest > 0
        self._cut = False  # forced tokens did not fit into max_tokens
        self._prefilled = False
        for token in forced_first:
            self._take(SampledToken(token))
        if speculation is not None:
            speculation.extend(prompt)

    @property
    def most_tokens(self) -> int:
        """The most tokens that this row can have."""
        return self.prompt_tokens + self.limits.max_tokens

    @property
    def room(self) -> int:
        """The number of tokens that the answer may still get."""
        return self.limits.max_tokens - len(self._answer.token_ids)

    @property
    def writing(self) -> bool:
        """Whether the model has begun to answer."""
        return self._prefilled

    def draws(self, draft: DraftProposal) -> TokenDraws | None:
        """How the tokens after the last one and after the nodes of `draft` may be chosen before the
        draft is walked; None where the walk needs distributions, or the host must follow.
        """
        if self._wants_logprobs or not self._chooser.free:
            return None
        params, tree = self._chooser.params, draft.tree
        if len(tree) and not params.greedy:
            assert self.speculation is not None
            if not isinstance(self.speculation.method.acceptor, ExactMatch):
                return None
        first, number = len(self._answer.token_ids), self._chooser.rng.number
        return TokenDraws(params, tuple(number(first + int(depth)) for depth in tree.depths))

    def advance(
        self,
        logits: LogitRows,
        draft: DraftProposal,
        target_outputs: Callable[[AcceptedPath], TargetOutputs],
        model: str,
        chosen: Sequence[int] | None = None,
    ) -> AcceptedPath:
        """Choose the next tokens, and pass on the new text.

        logits: [1 + nodes, vocabulary] after the last token and after the nodes of `draft`;
        modified. `chosen`: the tokens that `draws` led to there; then no logits are read.
        `target_outputs` returns the pass's outputs along an accepted path.

        Raises: `ModelOutputError` when the answer ends inside its JSON, `ModelRequestError` when
        its schema turns out too complex.
        """
        if not self._prefilled:
            self.ticket.put(Prefilled(tuple(self.tokens[: self.prompt_tokens])))
            self._prefilled = True
        plain = logits.host.copy() if self._wants_logprobs else None
        taken = self._chooser.taken
        walk = self._walk(logits, draft, chosen)
        tokens = walk.tokens(draft.tree)[: self._chooser.taken - taken]
        nodes = (ROOT, *walk.path)
        kept = self._write(
            [self._sampled(*pair, plain) for pair in zip(tokens, nodes, strict=False)]
        )
        forced = self._write([SampledToken(token) for token in self._forced()])
        reason = self._ending()
        self._report_to_drafter(draft, walk, kept, forced, None if reason else target_outputs)
        self._report(reason, model)
        return walk

    def admitted(self, draft: DraftProposal) -> DraftProposal:
        """`draft` without tokens that the answer's grammar forbids."""
        return draft if self._grammar is None else admitted(draft, self._grammar.following)

    def see(self, outputs: TargetOutputs) -> None:
        """Pass the outputs for a piece of the prompt to the drafter."""
        if self.speculation is not None:
            self.speculation.see(outputs)

    def end(self) -> None:
        """Release the drafter: the row has left the batch. Harmless when repeated."""
        if self.speculation is not None:
            self.speculation.end()

    def _walk(
        self, logits: LogitRows, draft: DraftProposal, chosen: Sequence[int] | None
    ) -> AcceptedPath:
        """The accepted path of `draft`, and the token after it."""
        tree, chooser = draft.tree, self._chooser

        def distribution_at(node: int) -> NDArray[np.float64]:
            if node != ROOT:
                chooser.take(tree.tokens[node])
            if chosen is not None:
                return certain(chosen[node - ROOT], logits.vocabulary)
            return chooser.distribution(logits.host[node - ROOT])

        position = len(self._answer.token_ids)
        if self.speculation is None:
            token = chooser.token(logits.host[0], position) if chosen is None else chosen[0]
            walk = AcceptedPath((), token)
        else:
            walk = self.speculation.walk(draft, distribution_at, chooser.rng, position)
        chooser.take(walk.bonus)
        return walk

    def _sampled(self, token: int, node: int, plain: NDArray[np.float32] | None) -> SampledToken:
        """The token after `node`, with the plain model's log probabilities if requested."""
        if plain is None:
            return SampledToken(token)
        return _with_logprobs(token, plain[node - ROOT], self._largest)

    def _forced(self) -> list[int]:
        """The tokens forced now, as far as there is room."""
        forced = [] if self._over else self._chooser.drain()
        self._cut = len(forced) > self.room
        return forced[: self.room]

    def _write(self, tokens: Sequence[SampledToken]) -> list[int]:
        """Take tokens up to the end of the answer; return those taken."""
        written = []
        for sampled in tokens:
            if self._over:
                break
            self._take(sampled)
            written.append(sampled.token)
        return written

    def _report_to_drafter(
        self,
        draft: DraftProposal,
        walk: AcceptedPath,
        kept: list[int],
        forced: list[int],
        target_outputs: Callable[[AcceptedPath], TargetOutputs] | None,
    ) -> None:
        """Pass the result of its draft to the drafter; `target_outputs`: None after the end."""
        if self.speculation is None:
            return
        if target_outputs is not None and self.speculation.watches:
            self.speculation.see(target_outputs(walk))
        self.speculation.settle(draft, walk, kept)
        self.speculation.extend(forced)

    def _report(self, reason: FinishReason | None, model: str) -> None:
        """Pass on the new text, and the completion if the answer has ended for `reason`."""
        if reason is None:
            delta = self._answer.delta()
        else:
            self.done = True
            self._answer.finish()
            delta = self._answer.last_delta()
        if delta is not None:
            self.ticket.put(delta)
        if reason is not None:
            completion = self._completion(reason, model)
            try:
                self._check_json(reason)
            except ModelOutputError as error:
                error.usage = completion.usage
                raise
            self.ticket.put(completion)

    def _take(self, sampled: SampledToken) -> None:
        self.tokens.append(sampled.token)
        self._answer.add(sampled, silent=self._ends(sampled.token))

    @property
    def _over(self) -> bool:
        """Whether the last token or a stop string ended the answer."""
        written = bool(self._answer.token_ids)
        return self._answer.stopped is not None or (written and self._ends(self.tokens[-1]))

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
            raise OutputTruncated(
                f"the answer reached max_tokens ({self.limits.max_tokens}) inside its JSON",
                hint=truncation_hint(self.ticket.request.schema),
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
            speculation=self._speculated(),
        )

    def _speculated(self) -> Speculated | None:
        if self.speculation is None:
            return None
        counters, fallback = self.speculation.counters, self.speculation.fallback
        return Speculated(
            self.speculation.method.name,
            counters.drafted,
            counters.accepted,
            counters.forwards,
            tuple(counters.tested),
            tuple(counters.held),
            self.proposal_s,
            self.speculation.lossless,
            fallback.reason if fallback is not None else "",
        )


def _with_logprobs(token: int, logits: NDArray[np.float32], most: int) -> SampledToken:
    top = logits.max()
    whole = top + np.log(np.exp(logits - top).sum(dtype=np.float64))
    if not most:
        return SampledToken(token, float(logits[token] - whole))
    largest = np.sort(np.partition(logits, -most)[-most:])[::-1]
    return SampledToken(token, float(logits[token] - whole), tuple((largest - whole).tolist()))


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:40]} is too large for a number")
    return value
