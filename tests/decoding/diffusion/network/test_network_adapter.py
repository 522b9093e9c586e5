"""The adapter: what is seen, the shift, what is read beside the text, and rows that keep apart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from tests.decoding.diffusion.network.small import (
    BLOCKS,
    ENCODER,
    END,
    FULL,
    MASK,
    NOISE,
    PROMPT,
    SHIFTED,
    SHIFTED_BLOCKS,
    VOCABULARY,
    canvas,
    llama,
    network,
    part,
    qwen,
    text,
    whole,
)
from weft.core.errors import CapabilityError, InternalError, ModelRequestError
from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.network_adapter import NetworkAdapter
from weft.decoding.diffusion.query import Query, SoftSlots
from weft.decoding.network.network import Network

KINDS = {
    "full": FULL,
    "shifted": SHIFTED,
    "blocks": BLOCKS,
    "shifted blocks": SHIFTED_BLOCKS,
    "encoder": ENCODER,
}
CLOSE = 2e-5


@pytest.fixture(scope="module", params=["llama", "qwen"])
def net(request: pytest.FixtureRequest) -> Network:
    return network(llama() if request.param == "llama" else qwen())


def asked(net: Network, traits: ModelTraits, *queries: Query) -> list[NDArray[np.float32]]:
    """By an adapter that holds nothing yet."""
    return NetworkAdapter(net, traits).forward(queries)


def same(one: NDArray[np.float32], other: NDArray[np.float32]) -> None:
    np.testing.assert_allclose(one, other, rtol=0, atol=CLOSE)


def permuting() -> tuple[Network, list[int]]:
    """A network that says of each token, whatever stands around it, another one: which."""
    made = network(llama(hidden_size=VOCABULARY, tie_word_embeddings=False))
    following = np.random.default_rng(3).permutation(END).tolist()
    model = made._model
    with torch.no_grad():
        for layer in model.model.layers:
            layer.self_attn.o_proj.weight.zero_()
            layer.mlp.down_proj.weight.zero_()
        model.model.embed_tokens.weight.copy_(torch.eye(VOCABULARY))
        model.lm_head.weight.zero_()
        for token, next_ in enumerate(following):
            model.lm_head.weight[next_, token] = 1.0
    return made, following


@pytest.mark.parametrize("traits", [FULL, SHIFTED], ids=["plain", "shifted"])
def test_a_prediction_stands_where_it_is_for(traits: ModelTraits) -> None:
    made, following = permuting()
    one = canvas(text(9), 3)
    wanted = [2, 5, 6, 8]
    (answer,) = asked(made, traits, whole(one, wanted))
    sources = [slot - traits.shifted for slot in wanted]
    assert answer.argmax(axis=1).tolist() == [following[one.ids[source]] for source in sources]
    # the same from a window, whose slot before is not part of it
    adapter = NetworkAdapter(made, traits)
    adapter.forward([whole(one)])
    (window,) = adapter.forward([part(one, [5, 6], [5, 6])])
    same(window, answer[1:3])


def test_what_is_banned_is_never_likely(net: Network) -> None:
    banned = replace(FULL, banned=frozenset({3, MASK}))
    (answer,) = asked(net, banned, whole(canvas()))
    assert answer.dtype == np.float32
    assert answer.shape == (11, VOCABULARY)
    assert np.isneginf(answer[:, [3, MASK]]).all()
    assert np.isfinite(np.delete(answer, [3, MASK], axis=1)).all()


def test_a_padded_vocabulary_is_cut(net: Network) -> None:
    (answer,) = asked(net, replace(FULL, vocabulary=60), whole(canvas()))
    (full,) = asked(net, FULL, whole(canvas()))
    np.testing.assert_array_equal(answer, full[:, :60])


@pytest.mark.parametrize("traits", KINDS.values(), ids=KINDS)
def test_a_window_is_read_as_in_the_whole(net: Network, traits: ModelTraits) -> None:
    one = canvas(text(6), 10)
    one.window = range(8, 12)
    adapter = NetworkAdapter(net, traits)
    (full,) = adapter.forward([whole(one)])
    (window,) = adapter.forward([part(one, range(8, 12), range(8, 12))])
    same(window, full)
    (single,) = adapter.forward([part(one, [9], [9])])
    same(single, full[1:2])


def test_blocks_see_no_later_ones(net: Network) -> None:
    one, other = canvas(text(6), 10), canvas(text(6), 10)
    other.commit([12, 15], [7, 8])
    wanted = range(6, 12)
    same(*(asked(net, BLOCKS, whole(made, wanted))[0] for made in (one, other)))
    rows = [asked(net, FULL, whole(made, wanted))[0] for made in (one, other)]
    assert np.abs(rows[0][:, :MASK] - rows[1][:, :MASK]).max() > 0.01


def test_an_encoder_reads_what_is_decided_causally(net: Network) -> None:
    one, other = canvas(text(6), 8), canvas(text(6), 8)
    other.commit([9, 10], [7, 8])
    for made in (one, other):
        NetworkAdapter(net, ENCODER).forward([replace(whole(made), kind="whole")])
    adapter = NetworkAdapter(net, ENCODER)
    adapter.forward([whole(one)])
    before = torch.stack([net.column(0, slot) for slot in range(6)])
    window = net.column(0, 9)
    adapter.forward([whole(other)])
    torch.testing.assert_close(
        torch.stack([net.column(0, slot) for slot in range(6)]), before, rtol=0, atol=CLOSE
    )
    other.window = range(14, 14)
    adapter.forward([replace(whole(other, []), kind="persist")])
    assert (net.column(0, 9) - window).abs().max() > 0.01


@pytest.mark.parametrize("traits", KINDS.values(), ids=KINDS)
def test_rows_do_not_depend_on_their_mates(net: Network, traits: ModelTraits) -> None:
    def rows(adapter: NetworkAdapter) -> list[Query]:
        made = [canvas(text(6, row), 10, row) for row in range(3)]
        adapter.forward([whole(one) for one in made])
        made[1].commit([8], [4])
        soft = SoftSlots(np.array([9]), np.array([[3, MASK]]), np.array([[0.6, 0.4]]))
        shadows = np.array([8])
        return [
            whole(made[0]),
            part(made[1], range(8, 12), [9, 10], soft=soft, shadows=shadows),
            part(made[2], [15], [15]),
            part(made[2], [14, 15], [14, 15], scratch=True),
        ]

    adapter = NetworkAdapter(net, traits)
    together = adapter.forward(rows(adapter))
    for number, answer in enumerate(together):
        alone = NetworkAdapter(net, traits)
        (expected,) = alone.forward([rows(alone)[number]])
        np.testing.assert_allclose(answer, expected, rtol=0, atol=1e-5)
        assert (answer.argmax(axis=1) == expected.argmax(axis=1)).all()


@pytest.mark.parametrize("traits", [FULL, SHIFTED, BLOCKS, SHIFTED_BLOCKS])
def test_a_shadow_is_the_prediction_of_a_masked_slot(traits: ModelTraits) -> None:
    # of one layer: in more, what others have read of the slot comes back
    made = network(llama(num_hidden_layers=1))
    one = canvas(text(6), 10)
    one.commit([8, 12, 13], [1, 2, 3])
    shadows = np.array([8, 12, 13])
    (answer,) = asked(made, traits, whole(one, [9], shadows=shadows))
    assert len(answer) == 4
    for slot, found in zip(shadows, answer[1:], strict=True):
        masked = canvas(text(6), 10)
        others = np.setdiff1d(shadows, [slot])
        masked.commit(others, one.ids[others])
        (expected,) = asked(made, traits, whole(masked, [slot]))
        same(found[None], expected)
    (plain,) = asked(made, traits, whole(one, [9]))
    same(answer[:1], plain)


def test_shadows_leave_the_text_as_it_is(net: Network) -> None:
    one = canvas(text(6), 10)
    one.commit([8], [1])
    adapter = NetworkAdapter(net, FULL)
    (plain,) = adapter.forward([whole(one)])
    adapter.forward([whole(one, shadows=np.array([8]))])
    (window,) = adapter.forward([part(one, [9, 10], [9, 10])])
    same(window, plain[2:4])
    one.limit = 20
    one.grow(2, MASK)
    with pytest.raises(InternalError, match="slot 16"):  # a shadow stood there
        adapter.forward([part(one, [9], [9])])


def test_a_soft_slot_is_read_as_its_mixture(net: Network) -> None:
    one, other = canvas(text(6), 4), canvas(text(6), 4)
    other.commit([7], [12])
    sure = SoftSlots(np.array([7]), np.array([[12, MASK]]), np.array([[1.0, 0.0]]))
    wanted = [6, 8, 9]
    hard = asked(net, FULL, whole(other, wanted))[0]
    same(asked(net, FULL, whole(one, wanted, soft=sure))[0], hard)
    half = replace(sure, weights=np.array([[0.5, 0.5]]))
    mixed = asked(net, FULL, whole(one, wanted, soft=half))[0]
    weights = net._model.get_input_embeddings().weight
    with torch.no_grad():
        kept = weights[12].clone()
        weights[12] = (kept + weights[MASK]) / 2
        expected = asked(net, FULL, whole(other, wanted))[0]
        weights[12] = kept
    if net._model.config.tie_word_embeddings:
        expected, mixed = np.delete(expected, 12, axis=1), np.delete(mixed, 12, axis=1)
    same(mixed, expected)


def test_a_soft_slot_that_is_not_read_is_left_as_it_was(net: Network) -> None:
    one = canvas(text(6), 6)
    adapter = NetworkAdapter(net, FULL)
    adapter.forward([whole(one)])
    soft = SoftSlots(np.array([7, 9]), np.array([[12], [13]]), np.ones((2, 1)))
    first = SoftSlots(soft.slots[:1], soft.ids[:1], soft.weights[:1])
    (both,) = adapter.forward([part(one, [7, 8], [8], soft=soft)])
    (alone,) = adapter.forward([part(one, [7, 8], [8], soft=first)])
    np.testing.assert_array_equal(both, alone)
    (none,) = adapter.forward([part(one, [10], [10], soft=soft)])
    assert np.isfinite(none[:, :MASK]).all()


def test_scratch_keeps_nothing_and_sees_the_row(net: Network) -> None:
    one = canvas(text(6), 10)
    adapter = NetworkAdapter(net, FULL)
    adapter.forward([whole(one)])
    before = [net.column(0, slot) for slot in range(one.length)]
    masked = np.full(6, MASK)
    guess = part(one, range(6), [3], scratch=True, ids=masked)
    (beside, _) = adapter.forward([guess, whole(canvas(text(6, 1), 9, row=1))])
    for slot, column in enumerate(before):
        torch.testing.assert_close(net.column(0, slot), column, rtol=0, atol=0)
    (fed,) = adapter.forward([part(one, range(6), [3], ids=masked)])
    same(beside, fed)


@pytest.mark.parametrize("piece", [4, 9, 30])
@pytest.mark.parametrize("traits", KINDS.values(), ids=KINDS)
def test_a_long_text_is_read_in_pieces(net: Network, traits: ModelTraits, piece: int) -> None:
    rows = [canvas(text(17, 1), 7), canvas(text(6, 2), 3, row=1), canvas(text(13, 3), 6, row=2)]
    queries = [whole(row) for row in rows]
    beside = whole(rows[2], scratch=True)
    expected = asked(net, traits, *queries, beside)
    keys = [net.column(0, slot) for slot in range(17)]
    widest: list[int] = []
    forward = net.forward
    adapter = NetworkAdapter(net, traits, piece)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(net, "forward", lambda s: (widest.append(len(s[0].tokens)), forward(s))[1])
        answers = adapter.forward([*queries, beside])
    for one, two in zip(answers, expected, strict=True):
        same(one, two)
    for slot, column in enumerate(keys):
        torch.testing.assert_close(net.column(0, slot), column, rtol=0, atol=CLOSE)
    assert (len(widest) > 1) == (traits.attention != "full" and piece < 24)


def test_a_forgotten_row_is_not_seen(net: Network) -> None:
    one = canvas()
    adapter = NetworkAdapter(net, FULL)
    adapter.forward([whole(one)])
    adapter.forward([part(one, [7], [7])])
    adapter.forget(0)
    with pytest.raises(InternalError, match="never read"):
        adapter.forward([part(one, [7], [7])])


def test_blocks_that_nobody_sees_need_not_be_read(net: Network) -> None:
    one = canvas(text(6), 10)
    adapter = NetworkAdapter(net, SHIFTED_BLOCKS)
    begin = Query(one, np.arange(8), np.array([8]), 9)  # the first of a block that is not read
    (answer,) = adapter.forward([begin])
    (full,) = asked(net, SHIFTED_BLOCKS, whole(one, [8]))
    same(answer, full)
    with pytest.raises(InternalError, match="slot 9"):
        adapter.forward([part(one, [8], [8])])


def test_what_cannot_be_asked_is_told(net: Network) -> None:
    one = canvas()
    adapter = NetworkAdapter(net, FULL)
    with pytest.raises(InternalError, match="the same row"):
        adapter.forward([whole(one), whole(one)])
    with pytest.raises(InternalError, match="beyond"):
        adapter.forward([Query(one, np.arange(8), np.array([8]), 8)])
    with pytest.raises(ModelRequestError, match="does not know"):
        adapter.forward([whole(canvas([1, VOCABULARY]))])
    with pytest.raises(ModelRequestError, match="does not know"):
        adapter.forward([whole(canvas([1, -1]))])
    with pytest.raises(ModelRequestError, match="longer than"):
        adapter.forward([whole(canvas(text(200), 57))])
    with pytest.raises(ModelRequestError, match="slot 0"):
        asked(net, SHIFTED, whole(canvas([], 4)))
    with pytest.raises(ModelRequestError, match="slot 0"):
        asked(net, SHIFTED, whole(canvas([], 4), [2], shadows=np.array([0])))
    with pytest.raises(CapabilityError, match="without a mask"):
        asked(net, NOISE, whole(one, shadows=np.array([7])))
    with pytest.raises(CapabilityError, match="cannot predict"):
        NetworkAdapter(net, replace(FULL, vocabulary=65))
    with pytest.raises(CapabilityError, match="no embedding"):
        NetworkAdapter(net, replace(FULL, mask_id=64))
    (fine,) = adapter.forward([whole(canvas(PROMPT, 3))])
    assert len(fine) == 3
