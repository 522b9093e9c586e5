"""PipeInfer (arXiv 2407.11798): stages of the target that drafts keep busy, for one sequence.

Knows no text, and no stages: it sends runs and looks at results.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from evals.speculative.pipeinfer.head import Head
from evals.speculative.pipeinfer.pipeline import Pipeline
from evals.speculative.pipeinfer.run import Run
from weft.decoding.speculative.drafters.model.continuous import ConfidenceCutoff
from weft.decoding.speculative.drafters.model.draft_cache import DraftCache
from weft.decoding.speculative.drafters.model.draft_model import DraftedToken, GreedyChoice


@dataclass(frozen=True, slots=True)
class PipelineOptions:
    """`batch`: most tokens of a drafted run. `split`: a token's second choice is read in a run of
    its own, if it is more probable than that; from 0.5 on never.
    """

    batch: int = 4
    cutoff: ConfidenceCutoff = field(default_factory=ConfidenceCutoff)
    split: float = 0.8


class PipelinedDecoding:
    """Iterate over it: the tokens of each result. The newest token is always on its way.

    Whenever a result is there, it is looked at; else another few tokens are drafted and sent
    behind the others, while the draft model is sure enough; else the next result is waited for.
    """

    def __init__(
        self,
        head: Head,
        pipeline: Pipeline,
        cache: DraftCache,
        options: PipelineOptions | None = None,
    ) -> None:
        self.head = head
        self.drafted = 0
        """Tokens sent as drafts, alternatives included."""
        self._pipeline = pipeline
        self._cache = cache
        self._options = options or PipelineOptions()
        self._line = cache.open()
        self._line.extend(head.text)
        self._choice = GreedyChoice()
        self._stuck = False
        self._chosen: dict[int, list[DraftedToken]] = {}

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        for run in [] if self.head.done else self.head.opening():
            self._pipeline.send(run)
        while not self.head.done:
            result = self._pipeline.poll()
            if result is None:
                if self._speculated():
                    continue
                result = self._pipeline.wait()
            tokens, runs = self.head.result(result.run, result.logits)
            self._account(result.run, len(tokens))
            for run in runs:
                self._pipeline.send(run)
            if tokens:
                self._line.extend(tokens)
                self._stuck = False
                yield tokens

    def close(self) -> None:
        """Stop the stages and let go of the draft's slot."""
        self._pipeline.close()
        for run in self.head.flight:
            self.head.cancel(run)
            self._account(run, 0)
        self._cache.close(self._line)

    def _speculated(self) -> bool:
        """Whether a few more tokens were drafted and sent."""
        head, options = self.head, self._options
        least = options.cutoff(head.speculative, head.misses)
        if self._stuck or least >= 1.0:
            return False
        chosen: list[DraftedToken] = []
        ahead = head.ahead
        while len(chosen) < min(options.batch, head.room) and self._cache.fits(
            self._line, len(ahead) + len(chosen)
        ):
            tokens = (*ahead, *(each.token for each in chosen))
            [logits] = self._cache.read([(self._line, tokens)])
            found = self._choice.choose(logits, len(self._line) + len(tokens), self._cache.stamp)
            if found.confidence < least:
                if self._cache.timeline is not None:
                    self._cache.timeline.discard(found.stamp)
                break
            chosen.append(found)
        self._stuck = not chosen
        if chosen:
            self._send(len(ahead), chosen)
        return bool(chosen)

    def _send(self, place: int, chosen: list[DraftedToken]) -> None:
        runs = [self.head.drafted([each.token for each in chosen])]
        self._chosen[runs[0].number] = chosen
        for offset, each in enumerate(chosen):
            token, probability = each.runner_up
            if probability > self._options.split:
                other = self.head.alternative(place + offset, token)
                runs += [] if other is None else [other]
        for run in runs:
            self.drafted += len(run.tokens)
            self._pipeline.send(run)

    def _account(self, run: Run, written: int) -> None:
        """Put on the timeline what of a run came to nothing: all of it, or what was rejected."""
        chosen = self._chosen.pop(run.number, [])
        held = 0 if run.cancelled else max(1, written)
        timeline = self._cache.timeline
        if timeline is None or run.kind == "prompt":
            return
        for stamp in run.stamps:
            timeline.discard(stamp, max(0, len(run.tokens) - held))
        for each in chosen[held:]:
            timeline.discard(each.stamp)
