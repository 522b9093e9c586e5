"""The drafts of one sequence: asked for, walked, settled. A drafter that fails is left behind.

Knows no model and no text; who hosts it reads the drafts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.decoding.speculative.accept.lossy import LossyAcceptor
from weft.decoding.speculative.asked import Asked, begun
from weft.decoding.speculative.chance import Chance
from weft.decoding.speculative.counters import Counters
from weft.decoding.speculative.draft import Draft
from weft.decoding.speculative.drafter import Drafter, Seen, Watching
from weft.decoding.speculative.events import Fallback
from weft.decoding.speculative.lengths import Lengths
from weft.decoding.speculative.method import Ask, Method
from weft.decoding.speculative.walk import LawAt, Walk

PLAIN = Draft()
MOST_NODES = 256
UNKNOWN = Asked()


class Speculation:
    """One sequence of `method`, over a target that knows `vocabulary` tokens.

    The order of calls: `extend` with the prompt; then of every step `ask`, `take`, `walk`,
    `settle`; `end` at last. `fallback` says why it drafts no more; `on_fallback` is told it at
    once.
    """

    def __init__(
        self,
        method: Method,
        vocabulary: int,
        asked: Asked = UNKNOWN,
        on_fallback: Callable[[Fallback], None] = lambda _fallback: None,
    ) -> None:
        self.method = method
        self.counters = Counters()
        self.fallback: Fallback | None = None
        self._vocabulary = vocabulary
        self._on_fallback = on_fallback
        self._drafter: Drafter | None = None
        self._lengths: Lengths | None = None
        try:
            self._lengths, self._drafter = method.lengths(), begun(method, asked)
        except Exception as error:  # noqa: BLE001 - a draft is worth no request
            self._give_up(error)

    @property
    def taps(self) -> tuple[int, ...]:
        """The layers of the target that the drafter looks at."""
        return self._drafter.taps if isinstance(self._drafter, Watching) else ()

    @property
    def lossless(self) -> bool:
        """Whether the text is that of plain decoding."""
        return not isinstance(self.method.acceptor, LossyAcceptor)

    @property
    def watches(self) -> bool:
        """Whether the drafter wants to see passes."""
        return isinstance(self._drafter, Watching)

    def extend(self, tokens: Sequence[int]) -> None:
        """The sequence goes on with `tokens`; of none the drafter is not told."""
        if self._drafter is not None and tokens:
            try:
                self._drafter.extend(tokens)
            except Exception as error:  # noqa: BLE001 - a draft is worth no request
                self._give_up(error)

    def see(self, seen: Seen) -> None:
        """The target has read what `seen` says. Comes before `extend` with what came of it."""
        if isinstance(self._drafter, Watching):
            try:
                self._drafter.see(seen)
            except Exception as error:  # noqa: BLE001 - a draft is worth no request
                self._give_up(error)

    def ask(self) -> Ask | None:
        """What to ask the method for now; None: nothing."""
        if self._drafter is None or self._lengths is None:
            return None
        try:
            return self._drafter, min(self._lengths.length(), MOST_NODES)
        except Exception as error:  # noqa: BLE001 - a draft is worth no request
            self._give_up(error)
            return None

    def take(self, proposed: Draft | BaseException, ask: Ask, room: int) -> Draft:
        """The draft to read, where `room` tokens may still be written."""
        if isinstance(proposed, BaseException):
            self._give_up(proposed)
            return PLAIN
        tree = proposed.tree
        if len(tree) > ask[1]:
            self._give_up(ValueError(f"a draft of {len(tree)} nodes where {ask[1]} were asked for"))
            return PLAIN
        strange = [t for t in (*tree.tokens, *proposed.aux.tokens) if not t < self._vocabulary]
        if strange:
            self._give_up(ValueError(f"token {strange[0]} is outside of {self._vocabulary}"))
            return PLAIN
        return proposed.clipped(room - 1)  # the target's own token comes after it

    def walk(self, draft: Draft, law_at: LawAt, chance: Chance, position: int) -> Walk:
        """What of `draft` is accepted, by the method's rule."""
        acceptor = self.method.acceptor
        if isinstance(acceptor, LossyAcceptor):
            return acceptor.walk_lossy(draft.tree, law_at, chance, position)
        return acceptor.walk(draft.tree, law_at, chance, position)

    def settle(self, draft: Draft, walk: Walk, tokens: Sequence[int]) -> None:
        """`tokens` of the walk were committed: all of them, or those up to the end of the text.

        What else is committed, because it was forced, is told by `extend` only.
        """
        accepted, deepest = min(len(walk.path), len(tokens)), int(draft.tree.depths.max())
        self.counters.step(len(draft.tree), deepest, walk.tried, accepted, len(tokens))
        if self._lengths is not None:
            try:
                self._lengths.observe(deepest, accepted)
            except Exception as error:  # noqa: BLE001 - a draft is worth no request
                self._give_up(error)
        self.extend(tokens)

    def end(self) -> None:
        """Let go of the drafter. Harmless when repeated."""
        drafter, self._drafter = self._drafter, None
        if drafter is not None:
            try:
                self.method.end(drafter)
            except Exception as error:  # noqa: BLE001 - the text is written already
                self._give_up(error)

    def _give_up(self, error: BaseException) -> None:
        if self.fallback is None:
            reason = f"{type(error).__name__}: {error}"[:300]
            self.fallback = Fallback(self.method.name, reason)
            self._on_fallback(self.fallback)
        self.end()
