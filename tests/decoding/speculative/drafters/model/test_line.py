"""The books of a draft model's cache: what it holds is what was written, and no more is read."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.decoding.speculative.drafters.model.paper import Paper
from tests.decoding.speculative.toy import WORDS
from weft.decoding.speculative.draft import DraftTree
from weft.decoding.speculative.drafters.model import draft_cache as cache_module
from weft.decoding.speculative.drafters.model.draft_cache import DraftCache, DraftSequence

tokens = st.integers(0, WORDS - 1)
texts = st.lists(tokens, max_size=6)


@given(st.lists(tokens, min_size=1, max_size=6), st.lists(st.tuples(texts, texts), max_size=8))
def test_a_line_reads_on_from_where_it_differs(
    prompt: list[int], steps: list[tuple[list[int], list[int]]]
) -> None:
    line, text = DraftSequence(0), list(prompt)
    line.extend(prompt)
    for more, ahead in steps:
        line.extend(more)
        text += more
        held = line.cached
        first, unread = line.unread(ahead)
        whole = [*text, *ahead]
        assert unread == whole[first:]
        assert unread
        same = next((n for n, (a, b) in enumerate(zip(held, whole, strict=False)) if a != b), None)
        agreed = min(len(held), len(whole)) if same is None else same
        assert first == min(agreed, len(whole) - 1), "as far as it holds the text, and no further"
        line.mark_read(first, unread)
        assert list(line.cached) == whole


@given(st.integers(1, 5), st.data())
def test_roll_back_at_every_depth(gamma: int, data: st.DataObject) -> None:
    """After a draft of gamma tokens: one token is read next, or two if all were accepted."""
    paper = Paper()
    cache = DraftCache(paper, WORDS)
    line = cache.open()
    line.extend([1, 2])
    text = [1, 2]
    for _ in range(4):
        drafted: list[int] = []
        for _ in range(gamma):
            [logits] = cache.read([(line, drafted)])
            assert logits.tolist() == Paper().logits([*text, *drafted]).astype("float32").tolist()
            drafted.append(int(logits.argmax()))
        accepted = data.draw(st.integers(0, gamma))
        refused = drafted[accepted : accepted + 1]
        wrong = data.draw(st.sampled_from([t for t in range(WORDS) if t not in refused]))
        line.extend([*drafted[:accepted], wrong])
        text += [*drafted[:accepted], wrong]
        first, unread = line.unread()
        assert len(unread) == (2 if accepted == gamma else 1)
        assert paper.held(line.slot, first) == text[:first]


@given(st.lists(st.lists(tokens, min_size=1, max_size=9), min_size=1, max_size=4), st.data())
def test_many_lines_share_a_pass(prompts: list[list[int]], data: st.DataObject) -> None:
    paper = Paper()
    cache = DraftCache(paper, WORDS)
    lines = [cache.open() for _ in prompts]
    assert len({line.slot for line in lines}) == len(lines)
    for line, prompt in zip(lines, prompts, strict=True):
        line.extend(prompt)
    for _ in range(3):
        asks = [(line, data.draw(texts)) for line in lines]
        before = cache.forwards
        rows = cache.read(asks)
        assert cache.forwards == before + 1
        for (_, ahead), prompt, row in zip(asks, prompts, rows, strict=True):
            assert row.tolist() == paper.logits([*prompt, *ahead]).astype("float32").tolist()


def test_a_tree_is_seen_along_its_paths_and_leaves_the_text() -> None:
    paper = Paper()
    cache = DraftCache(paper, WORDS)
    line = cache.open()
    line.extend([3, 1, 2])
    tree = DraftTree((0, 1, 2, 3), (-1, -1, 0, 1))
    [rows] = cache.read_trees([(line, tree)])
    paths = [[], [0], [1], [0, 2], [1, 3]]
    for row, path in zip(rows, paths, strict=True):
        assert row.tolist() == paper.logits([3, 1, 2, *path]).astype("float32").tolist()
    assert line.cached == (3, 1, 2)
    [row] = cache.read([(line, [1, 3])])
    assert row.tolist() == paper.logits([3, 1, 2, 1, 3]).astype("float32").tolist()


def test_a_long_prompt_is_read_in_pieces() -> None:
    paper = Paper()
    cache = DraftCache(paper, WORDS)
    long, short = cache.open(), cache.open()
    prompt = [n % WORDS for n in range(2 * cache_module.PIECE + 3)]
    long.extend(prompt)
    short.extend([1])
    rows = cache.read([(long, ()), (short, ())])
    assert cache.forwards == 3
    assert max(len(span.tokens) for spans in paper.passes for span in spans) <= cache_module.PIECE
    assert rows[0].tolist() == paper.logits(prompt).astype("float32").tolist()
    assert rows[1].tolist() == paper.logits([1]).astype("float32").tolist()


def test_slots_are_used_again() -> None:
    cache = DraftCache(Paper(), WORDS)
    first, second = cache.open(), cache.open()
    cache.close(first)
    assert cache.open().slot == first.slot
    assert cache.open().slot not in {first.slot, second.slot}


def test_what_a_model_cannot_read_does_not_fit() -> None:
    cache = DraftCache(Paper(context_tokens=6), WORDS + 3)
    line = cache.open()
    assert not cache.fits(line, 0), "nothing to go on from"
    line.extend([1, 2, 3])
    assert cache.fits(line, 3)
    assert not cache.fits(line, 4), "its context is full"
    line.extend([WORDS])
    assert not cache.fits(line, 0), "a token that it does not know"


def test_rows_of_padding_are_no_tokens() -> None:
    cache = DraftCache(Paper(vocabulary=WORDS + 7), WORDS)
    line = cache.open()
    line.extend([1])
    [row] = cache.read([(line, ())])
    assert row.shape == (WORDS,)
