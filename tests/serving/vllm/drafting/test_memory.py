"""What is kept of other requests stays within its bounds, whatever comes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from weft.serving.vllm.drafting.memory import LONGEST_LABEL, RecentTexts, TextMemory
from weft.serving.vllm.drafting.suffix_drafter import SuffixMatchDrafter


def drafted(memory: TextMemory, label: str, text: list[int]) -> list[int]:
    return [
        step.token for step in SuffixMatchDrafter(16, 0.05).guess(memory.sources(label), text, 4)
    ]


def test_a_label_knows_its_own_texts_first_and_others_share_the_rest() -> None:
    memory = TextMemory(10_000)
    memory.remember("plan", [1, 2, 3, 4])
    memory.remember("edit", [1, 2, 5, 6])
    assert drafted(memory, "plan", [1, 2]) == [3, 4]
    assert drafted(memory, "edit", [1, 2]) == [5, 6]
    assert drafted(memory, "", [9, 2, 5]) == [6]
    assert drafted(memory, "new", [2, 3]) == [4]


def test_the_label_that_was_used_least_lately_goes_first() -> None:
    memory = TextMemory(3200)  # labels share 1,600, and none has more than 200
    for number in range(20):
        memory.remember(str(number), list(range(90)))
        list(memory.sources("0"))
    assert "0" in memory.labels
    assert "1" not in memory.labels
    assert len(memory) <= 3200


def test_labels_are_cut_and_texts_that_say_nothing_are_left_out() -> None:
    memory = TextMemory(1000)
    memory.remember("x" * 1000, [1, 2, 3])
    memory.remember("y", [1, 2])
    assert memory.labels == ("x" * LONGEST_LABEL,)
    assert drafted(memory, "x" * 5000, [1, 2]) == [3]


@given(
    st.integers(64, 400),
    st.lists(
        st.tuples(st.sampled_from(["", "a", "b"]), st.lists(st.integers(0, 9), max_size=60)),
        max_size=40,
    ),
)
def test_it_never_holds_more_than_it_may(most: int, texts: list[tuple[str, list[int]]]) -> None:
    memory = TextMemory(most)
    for label, text in texts:
        memory.remember(label, text)
        assert len(memory) <= most


@given(st.integers(2, 40), st.lists(st.lists(st.integers(0, 9), max_size=50), max_size=20))
def test_a_shelf_has_the_latest_text_and_no_more_than_it_may(
    most: int, texts: list[list[int]]
) -> None:
    shelf = RecentTexts(most)
    for text in texts:
        shelf.add(text)
        assert len(shelf) <= max(most, 2)
