from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from weft.core.ports import Placed
from weft.decoding.network.visibility import Placement

JOIN = (Placed(3, 0), Placed(2, 3, (0,)), Placed(3, 3, (0,)), Placed(1, 6, (0, 1, 2)))
TOKENS = [10, 11, 12, 20, 21, 30, 31, 32, 40, 50, 51]


def test_positions_and_what_follows_the_prompt() -> None:
    placement = Placement(JOIN)
    assert [placement.position(n) for n in range(11)] == [0, 1, 2, 3, 4, 3, 4, 5, 6, 7, 8]
    assert [n for n in range(11) if placement.sees_all(n)] == [0, 1, 2, 3, 4, 8, 9, 10]
    assert placement.ordinary_tokens == 5
    assert Placement().ordinary_tokens is None
    assert Placement(JOIN[:2]).ordinary_tokens is None


def test_who_sees_whom() -> None:
    seen = Placement(JOIN).visible([4, 6, 8, 10], 11).int().tolist()
    assert seen == [
        [1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0],
        [1, 1, 1, 0, 0, 1, 1, 0, 0, 0, 0],
        [1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0],
        [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1],
    ]


def test_a_branch_has_the_names_of_the_row_that_wrote_it() -> None:
    names = Placement(JOIN).names(TOKENS)
    assert Placement().names([10, 11, 12, 20, 21]) == names[:5]
    assert Placement().names([10, 11, 12, 30, 31, 32]) == [*names[:3], *names[5:8]]
    assert names[8] not in Placement().names([10, 11, 12, 20, 21, 40])


def test_other_tokens_positions_or_views_have_other_names() -> None:
    names = Placement(JOIN).names(TOKENS)
    changed = Placement(JOIN).names([10, 11, 13, *TOKENS[3:]])
    assert changed[:2] == names[:2]
    assert not set(changed[2:]) & set(names)
    moved = Placement((*JOIN[:2], Placed(3, 4, (0,)), JOIN[3])).names(TOKENS)
    assert [a == b for a, b in zip(moved, names, strict=True)] == [True] * 5 + [False] * 6
    blind = Placement((*JOIN[:3], Placed(1, 6, (0, 1)))).names(TOKENS)
    assert blind[:8] == names[:8]
    assert not set(blind[8:]) & set(names)


@given(seed=st.integers(0, 2**32))
def test_names_can_be_found_piece_by_piece(seed: int) -> None:
    source = random.Random(seed)
    stretches, tokens = [], []
    for number in range(source.randint(1, 6)):
        sees = tuple(source.sample(range(number), source.randint(0, number)))
        stretches.append(Placed(source.randint(1, 5), source.randint(0, 9), sees))
        tokens += [source.randrange(4) for _ in range(stretches[-1].tokens)]
    tokens += [source.randrange(4) for _ in range(source.randint(0, 4))]
    placement = Placement(stretches)
    names = placement.names(tokens)
    assert len(set(names)) <= len(names) == len(tokens)
    at = source.randint(0, len(tokens))
    assert placement.names(tokens, placement.names(tokens[:at])) == names
