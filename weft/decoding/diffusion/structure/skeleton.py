"""One answer while it is filled: literals, values and open choices, laid out again as they are
decided.

Two invariants make every state a prefix of valid text: each value can be finished within its slots,
and everything fits the room with the cheapest branch of every open choice (`slots.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weft.core.errors import InternalError, ModelRequestError
from weft.decoding.diffusion.structure.languages.token_automaton import (
    TokenAutomaton,
    TokenVocabulary,
)
from weft.decoding.diffusion.structure.parts import (
    ChoicePart,
    LiteralText,
    LiteralTokens,
    MinimumTokens,
    Part,
    Parts,
    ValuePart,
)
from weft.decoding.diffusion.structure.slots import (
    OPEN,
    ChoiceBranch,
    ChoiceSlot,
    ValueSlots,
    branch_after,
    distinct_branches,
    shared_tokens,
)
from weft.decoding.diffusion.structure.structure import StructureKind


@dataclass(frozen=True, slots=True)
class StructureOptions:
    """Settings of skeletons.

    open_tokens: initial slots of a value of unknown length, which grows by as many when it is full.
    string_tokens: maximum of a string. depth: how deep a schema may nest before the first choice.
    window: slots that are written at once where attention is full; 0: the whole skeleton.

    Raises: `ValueError` for sizes out of range.
    """

    open_tokens: int = 8
    string_tokens: int = 128
    depth: int = 32
    window: int = 0

    def __post_init__(self) -> None:
        if min(self.open_tokens, self.string_tokens, self.depth) < 1 or self.window < 0:
            raise ValueError(f"no skeletons with {self}")


class LiteralSegment:
    """Tokens that are written verbatim."""

    def __init__(self, tokens: Sequence[int]) -> None:
        self.tokens = list(tokens)

    @property
    def size(self) -> int:
        return len(self.tokens)

    @property
    def need(self) -> int:
        return self.size


Segment: TypeAlias = LiteralSegment | ValueSlots | ChoiceSlot


class Skeleton:
    """A `Structure` of at most `room` tokens in the language of `parts`.

    Raises: `ModelRequestError` when the shortest text is longer.
    """

    kind: Final[StructureKind] = "skeleton"
    reason: Final = ""
    narrowed: tuple[str, ...] = ()

    def __init__(
        self,
        parts: Parts,
        lexicon: TokenVocabulary,
        needs: MinimumTokens,
        options: StructureOptions,
        room: int,
    ) -> None:
        self._lexicon, self._needs, self._options = lexicon, needs, options
        least = needs.of(parts)
        if least > room:
            raise ModelRequestError(
                f"the shortest text of this structure takes {least} tokens, and {room} are allowed",
                hint="raise max_tokens",
            )
        self._room = room
        self._spare = room - least
        self._segments = self._lay(parts, None)
        self.settle()

    @property
    def tokens(self) -> list[int]:
        """The token in each slot; `OPEN` where it is undecided."""
        return [token for segment in self._segments for token in segment.tokens]

    @property
    def literal(self) -> list[bool]:
        """For each slot: whether it is a literal."""
        return [isinstance(one, LiteralSegment) for one in self._segments for _ in range(one.size)]

    @property
    def over(self) -> bool:
        """Whether every slot is decided."""
        return OPEN not in self.tokens

    @property
    def complete(self) -> bool:
        return self.over

    def restrict(self, slot: int, logits: NDArray[np.float32]) -> NDArray[np.float32]:
        """`logits` [vocabulary] of an open slot, -inf for tokens that do not fit."""
        segment, index = self._at(slot)
        if isinstance(segment, ValueSlots):
            return segment.restrict(index, logits)
        assert isinstance(segment, ChoiceSlot)
        allowed = segment.allowed(self._slack)
        out = np.full_like(logits, -np.inf)
        out[allowed] = np.maximum(logits[allowed], np.float32(-1e30))
        return out

    def admitted(self, slots: Sequence[int], tokens: Sequence[int]) -> list[bool]:
        """Which can be decided, each after those admitted before; the first always, if it fits."""
        trials: dict[int, ValueSlots | ChoiceSlot] = {}
        slack, admitted = self._slack, []
        for slot, token in zip(slots, tokens, strict=True):
            number, index = self._place(slot)
            segment = self._segments[number]
            assert not isinstance(segment, LiteralSegment)
            trial = trials.setdefault(number, segment.copy())
            before = trial.need
            admitted.append(_take(trial, index, token, slack))
            if isinstance(trial, ChoiceSlot):
                slack -= trial.need - before
        return admitted

    def write(self, slots: Sequence[int], tokens: Sequence[int]) -> None:
        """Decide slots in the order of their admission, and lay out what follows from it.

        Raises: `InternalError` for slots that were not admitted.
        """
        places = [self._at(slot) for slot in slots]
        for (segment, index), token in zip(places, tokens, strict=True):
            if isinstance(segment, LiteralSegment) or not _take(segment, index, token, self._slack):
                raise InternalError(f"token {token} was written where it cannot stand")
        self.settle()

    def settle(self) -> None:
        """Decide forced slots, shrink ended values, lay out chosen branches."""
        number = 0
        while number < len(self._segments):
            segment = self._segments[number]
            if isinstance(segment, ChoiceSlot) and self._resolve(number, segment):
                number = max(0, number - 1)  # the segment before has another successor now
                continue
            if isinstance(segment, ValueSlots):
                self._settle_value(segment, number)
            number += 1
        if self._slack < 0:
            raise InternalError(f"a structure takes {-self._slack} tokens too many")

    @property
    def _slack(self) -> int:
        """Unclaimed slots of the room."""
        return self._room - sum(segment.need for segment in self._segments)

    # --- deciding

    def _settle_value(self, value: ValueSlots, number: int) -> None:
        after = self._segments[number + 1] if number + 1 < len(self._segments) else None
        value.follow(_first_tokens(after), self._lexicon)
        while not value.settled:
            forced = value.forced()
            if forced is None:
                grown = min(self._options.open_tokens, self._slack, value.most - value.size)
                if grown > 0 and value.full and value.may_go_on:
                    value.grow(grown)
                else:
                    value.settled = True
            elif forced[1] == OPEN:
                value.close(forced[0])
            else:
                value.take(*forced)

    def _resolve(self, number: int, switch: ChoiceSlot) -> bool:
        """Lay out the branch of a decided choice; whether it was decided."""
        if switch.token == OPEN:
            allowed = switch.allowed(self._slack)
            if len(allowed) != 1:
                return False
            switch.take(int(allowed[0]), self._slack)
        after = self._segments[number + 1] if number + 1 < len(self._segments) else None
        self._spare = self._slack
        laid = self._open(switch.branches, after)
        head = switch.branches[0].head
        if head is not None:
            first = laid[0]
            assert isinstance(first, ValueSlots)
            first.take(0, switch.token)
        self._segments[number : number + 1] = laid
        return True

    # --- laying out

    def _lay(self, parts: Sequence[Part], after: Segment | None) -> list[Segment]:
        """Segments of `parts`, made from the right: a choice depends on what follows it."""
        out: list[Segment] = []
        for literal, run in reversed([(k, list(g)) for k, g in groupby(parts, _is_wording)]):
            if literal:
                out.insert(0, LiteralSegment(self._spell(run)))
                continue
            for part in reversed(run):
                follows = out[0] if out else after
                out[:0] = self._single(part, follows)
        return [
            segment for segment in out if segment.size or not isinstance(segment, LiteralSegment)
        ]

    def _single(self, part: Part, after: Segment | None) -> list[Segment]:
        if isinstance(part, ValuePart):
            return [self._value(part.language)]
        assert isinstance(part, ChoicePart)
        branches = self._branches(part, after)
        least = self._needs.of((part,))
        cheapest = max(1, min(branch.need for branch in branches))
        self._spare -= max(0, cheapest - least)
        return self._open(branches, after)

    def _value(self, language: TokenAutomaton, size: int | None = None) -> ValueSlots:
        if size is None:
            size = self._reserved(language)
            self._spare -= size - language.least
        return ValueSlots(language, size, language.longest)

    def _reserved(self, language: TokenAutomaton) -> int:
        """Initial slots of a value: as many as it needs, and some of the spare ones."""
        most = min(language.longest, self._options.open_tokens, language.least + self._spare)
        return max(language.least, most)

    def _branches(self, choice: ChoicePart, after: Segment | None) -> tuple[ChoiceBranch, ...]:
        """The branches of a choice, including those of choices at its beginning."""
        left: list[Parts] = [(choice,)]
        visited: set[tuple[object, ...]] = set()
        branches: list[ChoiceBranch] = []
        while left:
            parts = left.pop(0)
            head = parts[0] if parts else None
            if not isinstance(head, ChoicePart):
                branches.extend(self._branch(parts, after))
            elif (head.key, *parts[1:]) not in visited:
                visited.add((head.key, *parts[1:]))
                left[:0] = [(*branch, *parts[1:]) for branch in head.branches]
        return distinct_branches(branches)

    def _branch(self, parts: Parts, after: Segment | None) -> list[ChoiceBranch]:
        if not parts:
            word = tuple(after.tokens) if isinstance(after, LiteralSegment) else ()
            return [ChoiceBranch(word, (), 0, stays=True)]
        need = self._needs.of(parts)
        if isinstance(parts[0], ValuePart):
            language = parts[0].language
            room = max(1, self._reserved(language))
            return [ChoiceBranch((), parts, need - language.least + room, language, room)]
        count = next((n for n, part in enumerate(parts) if not _is_wording(part)), len(parts))
        word = self._spell(parts[:count])
        return [ChoiceBranch(word, parts[count:], len(word) + self._needs.of(parts[count:]))]

    def _open(self, branches: Sequence[ChoiceBranch], after: Segment | None) -> list[Segment]:
        """The only branch laid out, or a choice after the tokens that all branches begin with."""
        unknown = [branch for branch in branches if branch.stays and not branch.word]
        if unknown or len(branches) == 1:
            return self._lay_branch((unknown or list(branches))[0], after)
        tokens = shared_tokens(branches)
        stays = any(branch.stays for branch in branches)
        if tokens and stays:
            assert isinstance(after, LiteralSegment)
            after.tokens = after.tokens[len(tokens) :]
        left = [branch_after(branch, tokens, again=stays) for branch in branches]
        return [*([LiteralSegment(tokens)] if tokens else []), ChoiceSlot(left)]

    def _lay_branch(self, branch: ChoiceBranch, after: Segment | None) -> list[Segment]:
        if branch.stays:
            return []
        if branch.head is not None:
            rest = self._lay(branch.rest[1:], after)
            return [self._value(branch.head, branch.room), *rest]
        parts = branch.rest
        while (
            isinstance(after, LiteralSegment)
            and parts
            and isinstance(last := parts[-1], LiteralTokens)
        ):
            # restore what was taken from its beginning before the branch was known
            after.tokens[:0] = last.tokens
            parts = parts[:-1]
        rest = self._lay(parts, after)
        return [LiteralSegment(branch.word), *rest] if branch.word else rest

    def _spell(self, parts: Sequence[Part]) -> tuple[int, ...]:
        """Adjacent texts as the tokens of their concatenation, if these are not more."""
        texts = [part.text for part in parts if isinstance(part, LiteralText)]
        apart = [token for part in parts for token in self._alone(part)]
        if len(texts) == len(parts):
            whole = self._lexicon.spell("".join(texts))
            return whole if len(whole) <= len(apart) else tuple(apart)
        return tuple(apart)

    def _alone(self, part: Part) -> tuple[int, ...]:
        if isinstance(part, LiteralText):
            return self._lexicon.spell(part.text)
        return part.tokens if isinstance(part, LiteralTokens) else ()

    # --- finding

    def _place(self, slot: int) -> tuple[int, int]:
        """The number of the segment, and the slot within it."""
        for number, segment in enumerate(self._segments):
            if slot < segment.size:
                return number, slot
            slot -= segment.size
        raise InternalError("a slot behind the end of a structure")

    def _at(self, slot: int) -> tuple[Segment, int]:
        number, index = self._place(slot)
        return self._segments[number], index


def _take(segment: ValueSlots | ChoiceSlot, index: int, token: int, slack: int) -> bool:
    if isinstance(segment, ChoiceSlot):
        return segment.token == OPEN and segment.take(token, slack)
    if index >= segment.size or segment.tokens[index] != OPEN:
        return False
    return segment.take(index, token)


def _is_wording(part: Part) -> bool:
    return isinstance(part, LiteralText | LiteralTokens)


def _first_tokens(segment: Segment | None) -> NDArray[np.int64]:
    if isinstance(segment, LiteralSegment):
        return np.array(segment.tokens[:1], dtype=np.int64)
    if isinstance(segment, ChoiceSlot):
        first = sorted({branch.word[0] for branch in segment.branches if branch.word})
        return np.array(first, dtype=np.int64)
    return np.empty(0, dtype=np.int64)
