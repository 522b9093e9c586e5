"""EasySpec as a method: one team of ranks drafts for all sequences of a target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

from weft.decoding.speculative.accept.match import Match
from weft.decoding.speculative.draft import Draft
from weft.decoding.speculative.drafter import Drafter
from weft.decoding.speculative.drafters.layer_parallel.layered import Job
from weft.decoding.speculative.drafters.layer_parallel.team import Team
from weft.decoding.speculative.lengths import Always, Lengths
from weft.decoding.speculative.method import Ask
from weft.decoding.speculative.tree import DraftTree

NAME = "easyspec"


class Sequenced:
    """Implements `Drafter`: one sequence in a slot of the draft model's cache."""

    name = NAME

    def __init__(self, team: Team, slot: int) -> None:
        self.slot = slot
        self._team = team
        self._tokens: list[int] = []
        self._read = 0

    def extend(self, tokens: Sequence[int]) -> None:
        self._tokens += tokens

    def job(self, most: int) -> Job | None:
        """What to read and draft; None where there is nothing to draft from, or no room."""
        room = self._team.context_tokens - len(self._tokens)
        first = min(self._read, len(self._tokens) - 1)  # asked again: the last is read again
        if first < 0 or min(most, room) < 1:
            return None
        return Job(self.slot, first, tuple(self._tokens[first:]), min(most, room))

    def drafted(self) -> None:
        """What was committed has been read, in exact order."""
        self._read = len(self._tokens)

    def propose(self, most: int) -> DraftTree:
        job = self.job(most)
        if job is None:
            return DraftTree()
        (tokens,) = self._team.draft([job])
        self.drafted()
        return DraftTree.chain(tokens)


class EasySpec:
    """Implements `Method`: chains of up to `most` tokens, always the likeliest."""

    name = NAME
    acceptor = Match()

    def __init__(self, team: Team, most: int) -> None:
        self._team = team
        self._most = most
        self._free: list[int] = []
        self._slots = 0

    @property
    def forwards(self) -> int:
        """Passes of the draft model so far, each over all rows that drafted."""
        return self._team.forwards

    def lengths(self) -> Lengths:
        return Always(self._most)

    def begin(self) -> Drafter:
        if not self._free:
            self._free.append(self._slots)
            self._slots += 1
        return Sequenced(self._team, self._free.pop())

    def propose(self, asks: Sequence[Ask]) -> Sequence[Draft | BaseException]:
        drafters = [drafter for drafter, _ in asks]
        assert _ours(drafters)
        jobs = [drafter.job(most) for drafter, (_, most) in zip(drafters, asks, strict=True)]
        live = [job for job in jobs if job is not None]
        try:
            drafted = iter(self._team.draft(live) if live else [])
        except Exception as error:  # noqa: BLE001 - all of them asked one team
            return [error for _ in asks]
        found = []
        for drafter, job in zip(drafters, jobs, strict=True):
            if job is not None:
                drafter.drafted()
            tree = DraftTree() if job is None else DraftTree.chain(next(drafted))
            found.append(Draft(tree, source=NAME))
        return found

    def end(self, drafter: Drafter) -> None:
        if isinstance(drafter, Sequenced):
            self._free.append(drafter.slot)

    def close(self) -> None:
        self._team.close()


def _ours(drafters: Sequence[Drafter]) -> TypeGuard[list[Sequenced]]:
    return all(isinstance(drafter, Sequenced) for drafter in drafters)
