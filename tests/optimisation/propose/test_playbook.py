"""Merging a playbook: ids unique, counters never lost, size bounded, order of no matter."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.core.errors import InputError
from weft.optimisation.propose.playbook import (
    Playbook,
    PlaybookBullet,
    PlaybookOperation,
    bullet_id,
    read_operations,
)

TEXTS = ["units", "think first", "short", "cite", "check"]
IDS = [bullet_id(text) for text in TEXTS]
operations = st.builds(
    PlaybookOperation,
    st.sampled_from(["ADD", "UPDATE", "REMOVE"]),
    st.sampled_from(IDS),
    st.sampled_from(TEXTS),
    st.integers(0, 3),
    st.integers(0, 3),
)


@given(st.lists(st.lists(operations, max_size=8), max_size=5), st.integers(1, 5))
def test_ids_stay_unique_and_the_size_bounded(
    batches: list[list[PlaybookOperation]], limit: int
) -> None:
    book = Playbook(limit=limit)
    for batch in batches:
        book = book.merge(batch)
        ids = [bullet.id for bullet in book.bullets]
        assert len(ids) == len(set(ids)) <= limit


@given(st.lists(operations.filter(lambda each: each.kind != "REMOVE"), max_size=20))
def test_counters_are_the_sums_of_what_was_counted(batch: list[PlaybookOperation]) -> None:
    start = Playbook(tuple(PlaybookBullet(id_, "old", 1, 2) for id_ in sorted(IDS)))
    for bullet in start.merge(batch).bullets:
        mine = [each for each in batch if each.kind == "UPDATE" and each.id == bullet.id]
        assert bullet.helpful == 1 + sum(each.helpful for each in mine)
        assert bullet.harmful == 2 + sum(each.harmful for each in mine)


def _target(operation: PlaybookOperation) -> str:
    return bullet_id(operation.text) if operation.kind == "ADD" else operation.id


@given(st.lists(operations, unique_by=_target), st.integers(1, 5), st.data())
def test_operations_on_different_bullets_commute(
    batch: list[PlaybookOperation], limit: int, data: st.DataObject
) -> None:
    start = Playbook(limit=limit).merge([PlaybookOperation("ADD", text=t) for t in TEXTS[:3]])
    assert start.merge(batch) == start.merge(data.draw(st.permutations(batch)))


def test_the_least_useful_bullet_goes_first() -> None:
    good, bad = sorted(IDS)[:2]
    book = Playbook((PlaybookBullet(good, "a", 0, 3), PlaybookBullet(bad, "b", 3, 0)), 2)
    kept = book.merge([PlaybookOperation("ADD", text="new")]).bullets
    assert {bullet.text for bullet in kept} == {"b", "new"}
    assert Playbook().render("{{ q }}") == "{{ q }}"
    assert book.render("{{ q }}") == "{{ q }}\n\nLessons:\n- a\n- b"


@pytest.mark.parametrize(
    "item",
    [
        7,
        {"kind": "REWRITE", "text": "x"},
        {"kind": "ADD", "text": ""},
        {"kind": "ADD", "text": "{{ secret }}"},
        {"kind": "ADD", "text": "one\ntwo"},
        {"kind": "ADD", "text": "x" * 401},
        {"kind": "UPDATE", "id": "a", "helpful": -1},
        {"kind": "UPDATE", "id": ["a"]},
    ],
)
def test_what_is_no_operation_is_dropped_and_counted(item: object) -> None:
    kept, dropped = read_operations([item, {"kind": "ADD", "text": "units"}])
    assert (kept, dropped) == ([PlaybookOperation("ADD", text="units")], 1)
    assert read_operations("no list") == ((), 1)


def test_a_playbook_with_equal_ids_is_refused() -> None:
    with pytest.raises(InputError, match="unique"):
        Playbook((PlaybookBullet("a", "x"), PlaybookBullet("a", "y")))
