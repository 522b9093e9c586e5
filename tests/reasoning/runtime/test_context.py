"""Where tokens stand when branches are spliced, against a plain reckoning of the published rule."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from tests.profile import examples
from weft.core.ports import ModelRequest
from weft.reasoning.runtime.context import TokenContext


@dataclass(frozen=True)
class Block:
    """Words, and perhaps a fork after them, with words after its join."""

    words: int
    branches: tuple[Block, ...] = ()
    tail: int = 0
    after: int = 0


blocks = st.recursive(
    st.builds(Block, st.integers(1, 4)),
    lambda inner: st.builds(
        Block,
        st.integers(1, 4),
        st.lists(inner, min_size=1, max_size=3).map(tuple),
        st.integers(1, 2),
        st.integers(0, 3),
    ),
    max_leaves=8,
)


def build(context: TokenContext, block: Block) -> TokenContext:
    context = context.plus((7,) * block.words, "x" * block.words)
    if not block.branches:
        return context
    branches = [build(context.inherited(), branch) for branch in block.branches]
    context = context.spliced(branches, (8,) * block.tail, "t" * block.tail)
    return context.plus((9,) * block.after, "a" * block.after)


def reckon(
    block: Block, position: int, seen: frozenset[int], table: list[tuple[int, frozenset[int]]]
) -> tuple[int, frozenset[int]]:
    """Adds (position, tokens it sees) for each token; returns where it ends and what it has seen.

    Every branch starts at one position and sees what was before the fork; what comes after starts
    behind the longest and sees all.
    """

    def write(count: int) -> None:
        nonlocal position, seen
        for _ in range(count):
            table.append((position, seen))
            seen |= {len(table) - 1}
            position += 1

    write(block.words)
    if block.branches:
        ends = [reckon(branch, position, seen, table) for branch in block.branches]
        position = max(end for end, _ in ends)
        seen = seen.union(*(more for _, more in ends))
        write(block.tail + block.after)
    return position, seen


def placed(context: TokenContext) -> list[tuple[int, frozenset[int]]]:
    """The same table from the stretches of a context."""
    table: list[tuple[int, frozenset[int]]] = []
    starts: list[int] = []
    for stretch in context.stretches:
        starts.append(len(table))
        before: frozenset[int] = frozenset()
        for index in stretch.sees:
            before |= set(range(starts[index], starts[index] + context.stretches[index].tokens))
        for offset in range(stretch.tokens):
            own = range(starts[-1], starts[-1] + offset)
            table.append((stretch.position + offset, before | set(own)))
    return table


@examples(300)
@given(blocks)
def test_tokens_stand_and_see_as_published(block: Block) -> None:
    context = build(TokenContext((5, 5)), block)
    table: list[tuple[int, frozenset[int]]] = [(0, frozenset()), (1, frozenset({0}))]
    end, _ = reckon(block, 2, frozenset({0, 1}), table)
    assert placed(context) == table
    assert context.end == end
    assert len(context.text) == len(context.ids)
    if context.placed:
        ModelRequest(prompt_token_ids=context.all_ids, placement=context.placed)


def test_a_context_without_forks_is_not_placed() -> None:
    context = TokenContext((1, 2)).plus((3,), "c")
    assert context.placed == ()
    assert (context.end, len(context), context.all_ids) == (3, 3, (1, 2, 3))


def test_a_placed_context_can_be_cut() -> None:
    context = build(TokenContext((5, 5)), Block(2, (Block(3), Block(1)), 2, 1))
    shorter = context.cut(2 + 3 + 1, "")
    assert placed(shorter) == placed(context)[: 2 + 2 + 3 + 1]
    assert placed(context.cut(0, "")) == placed(context)[:2]
