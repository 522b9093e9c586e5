"""EasySpec as a method: slots, what is read when, and failures that cost no text."""

from __future__ import annotations

from collections.abc import Sequence

from weft.core.errors import ModelUnavailable
from weft.decoding.speculative.draft import DraftProposal
from weft.decoding.speculative.drafter import propose_all
from weft.decoding.speculative.drafters.model.easyspec import EasySpecMethod
from weft.decoding.speculative.drafters.model.layer_parallel.layered import DraftJob


class Counting:
    """Implements `Team`: drafts the slot's number, and writes down what it was told."""

    context_tokens = 12

    def __init__(self) -> None:
        self.told: list[list[DraftJob]] = []
        self.closed = False
        self.lost = False
        self.forwards = 0

    def draft(self, jobs: Sequence[DraftJob]) -> list[list[int]]:
        if self.lost:
            raise ModelUnavailable("lost")
        self.told.append(list(jobs))
        return [[job.slot] * job.most for job in jobs]

    def close(self) -> None:
        self.closed = True


def trees(found: Sequence[DraftProposal | BaseException]) -> list[tuple[int, ...]]:
    assert all(isinstance(draft, DraftProposal) for draft in found)
    return [draft.tree.tokens for draft in found if isinstance(draft, DraftProposal)]


def test_each_committed_token_is_read_once_in_its_column() -> None:
    team = Counting()
    method = EasySpecMethod(team, most=4)
    first, second = method.begin(), method.begin()
    first.extend([5, 6])
    first.extend([7])
    second.extend([9])
    assert trees(method.propose([(first, 3), (second, 2)])) == [(0, 0, 0), (1, 1)]
    second.extend([10, 11])
    assert trees(method.propose([(first, 1), (second, 4)])) == [(0,), (1, 1, 1, 1)]
    assert team.told == [
        [DraftJob(0, 0, (5, 6, 7), 3), DraftJob(1, 0, (9,), 2)],
        [DraftJob(0, 2, (7,), 1), DraftJob(1, 1, (10, 11), 4)],
    ]


def test_a_row_that_may_not_draft_is_read_later() -> None:
    team = Counting()
    method = EasySpecMethod(team, most=4)
    row = method.begin()
    assert trees(method.propose([(row, 3)])) == [()], "nothing was told yet"
    row.extend([5])
    assert trees(method.propose([(row, 0)])) == [()]
    row.extend([6])
    method.propose([(row, 2)])
    assert team.told == [[DraftJob(0, 0, (5, 6), 2)]]


def test_nothing_is_drafted_past_the_context_of_the_draft_model() -> None:
    team = Counting()
    method = EasySpecMethod(team, most=4)
    row = method.begin()
    row.extend(range(10))
    assert trees(method.propose([(row, 4)])) == [(0, 0)]
    row.extend(range(2))
    assert trees(method.propose([(row, 4)])) == [()]


def test_slots_are_used_again() -> None:
    method = EasySpecMethod(Counting(), most=4)
    rows = [method.begin() for _ in range(3)]
    method.end(rows[1])
    again = method.begin()
    again.extend([1])
    assert trees(method.propose([(again, 1)])) == [(1,)]
    assert again.name == method.name == "easyspec"


def test_a_lost_rank_is_an_error_of_every_row_that_asked() -> None:
    team = Counting()
    method = EasySpecMethod(team, most=4)
    rows = [method.begin(), method.begin()]
    for row in rows:
        row.extend([1])
    team.lost = True
    assert [type(found) for found in propose_all(method, [(row, 2) for row in rows])] == [
        ModelUnavailable
    ] * 2
    team.lost = False
    assert trees(method.propose([(rows[1], 1)])) == [(1,)]
    assert [type(found) for found in propose_all(method, [(object(), 1)])] == [ValueError]  # type: ignore[list-item]


def test_the_method_lets_its_team_go() -> None:
    team = Counting()
    EasySpecMethod(team, most=1).close()
    assert team.closed
