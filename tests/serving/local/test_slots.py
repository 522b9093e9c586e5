from __future__ import annotations

from weft.serving.local.autoregressive.slots import CacheSlots, common_prefix


def test_common_prefix() -> None:
    assert common_prefix([1, 2, 3], [1, 2, 4]) == 2
    assert common_prefix([1, 2], [1, 2, 3]) == 2
    assert common_prefix([], [1]) == 0
    assert common_prefix([2], [1]) == 0


def test_the_last_prompt_token_is_always_read() -> None:
    slots = CacheSlots(2)
    first = slots.claim([1, 2, 3])
    first.slot.tokens.extend([1, 2, 3])
    first.slot.busy = False
    assert slots.claim([1, 2, 3]).reused == 2


def test_a_free_slot_with_the_prefix_is_taken_as_it_is() -> None:
    slots = CacheSlots(3)
    for start in (1, 5):
        claim = slots.claim([start])
        claim.slot.tokens.extend([start, 8, 9])
    for number in range(2):
        slots._slots[number].busy = False
    claim = slots.claim([5, 8, 7])
    assert claim.source is claim.slot
    assert (claim.slot.number, claim.reused, claim.slot.tokens) == (1, 2, [5, 8])


def test_the_prefix_of_a_busy_slot_is_copied_into_the_least_useful_free_one() -> None:
    slots = CacheSlots(3)
    contents = ([1, 2, 3, 4], [7, 7, 7], [6])
    for tokens in contents:
        slots.claim(tokens).slot.tokens.extend(tokens)
    slots._slots[1].busy = slots._slots[2].busy = False
    claim = slots.claim([1, 2, 3, 9])
    assert claim.source.number == 0
    assert (claim.slot.number, claim.reused, claim.slot.tokens) == (2, 3, [1, 2, 3])
    assert slots.free == 1


def test_slots_are_made_only_when_needed() -> None:
    slots = CacheSlots(8)
    for _ in range(5):
        claim = slots.claim([1, 2])
        claim.slot.tokens.extend([1, 2])
        claim.slot.busy = False
    assert len(slots) == 1
    assert slots.free == 8


def test_a_long_answer_is_not_lost_for_a_short_prefix() -> None:
    slots = CacheSlots(3)
    for tokens in ([1, 2, 3, 4, 5, 6], [7, 7]):
        slots.claim(tokens).slot.tokens.extend(tokens)
    for slot in slots._slots:
        slot.busy = False
    claim = slots.claim([1, 2, 9])
    assert (claim.slot.number, claim.source.number, claim.reused) == (1, 0, 2)
    assert slots._slots[0].tokens == [1, 2, 3, 4, 5, 6]


def test_an_answer_is_not_the_prefix_of_a_prompt_where_prompts_are_read_in_another_way() -> None:
    slots = CacheSlots(1)
    slot = slots.claim([1, 2]).slot
    slot.tokens, slot.prompt, slot.busy = [1, 2, 3, 4], 2, False
    assert slots.reusable([1, 2, 3, 4, 5]) == 2
    slot.prompt = None
    assert slots.reusable([1, 2, 3, 4, 5]) == 4
    assert slots.claim([1, 2, 3]).slot.prompt is None
