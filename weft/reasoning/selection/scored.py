"""Best of n by a scorer, alone or as weights of a vote. Knows no scorer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from weft.reasoning.question import Question
from weft.reasoning.selection.ballots import ballots, elect, unread
from weft.reasoning.selection.selector import Scorer, Selected
from weft.reasoning.selection.vote import tally
from weft.reasoning.thought import Sample
from weft.reasoning.thread.asking import Asking


class BestOf:
    """The sample with the highest score; `vote`: the answer with the highest sum of scores.

    Scores that the vote adds up must not be negative. Where nothing could be scored, the majority
    decides.
    """

    def __init__(self, scorer: Scorer, *, vote: bool = False) -> None:
        self._scorer = scorer
        self._vote = vote

    @property
    def name(self) -> str:
        """See `Selector.name`."""
        return "best-weighted" if self._vote else "best"

    async def select(
        self, thread: Asking, question: Question, samples: Sequence[Sample]
    ) -> Selected:
        """See `Selector.select`. Samples without a text are not scored."""
        written = [sample for sample in samples if sample.text.strip()]
        if not written:
            return unread(samples)
        found = await self._scorer.score(thread, question, written)
        pairs = zip(written, found, strict=True)
        scored = [replace(s, score=score) for s, score in pairs if score is not None]
        if not scored:
            return elect(samples, ballots(samples), tally, "votes, nothing being scored,")
        scores = {sample.index: sample.score or 0.0 for sample in scored}
        if self._vote and any(sample.key is not None for sample in scored):
            chosen = elect(samples, ballots(scored, scores), tally, "votes, by score,")
            return replace(chosen, scores=scores)
        best = min(scored, key=lambda s: (-(s.score or 0.0), s.tokens, s.index))
        why = f"the highest of {len(scored)} scores, {best.score:.3g}"
        return Selected(best.index, best.key, why, scores=scores)
