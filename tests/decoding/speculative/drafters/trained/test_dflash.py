"""DFlash: drafting asks what was learnt, rows do not matter, the text is that of plain decoding."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.decoding.speculative.rows import SHAPINGS, alone, plain, together
from tests.serving.local.playback import EXACT
from tests.serving.local.tiny import END
from weft.core.errors import CapabilityError, InputError, SpecError
from weft.decoding.network.network import Network
from weft.decoding.network.packing import Span
from weft.decoding.sampling import SamplingParams
from weft.decoding.speculative import trained_drafter
from weft.decoding.speculative.drafter import TargetOutputs
from weft.decoding.speculative.drafters.trained.dflash import (
    DFlashContext,
    DFlashDrafter,
    DFlashMethod,
    DFlashModel,
    loaded,
)
from weft.decoding.speculative.drafters.trained.feature_layers import DFlash, DFlashShape
from weft.decoding.speculative.loop import DecodeLimits
from weft.decoding.speculative.presets import made
from weft.training.corpus import Corpus, TrainingText, batch_of
from weft.training.drafters.dflash import KIND, DFlashObjective, spread_taps
from weft.training.teacher import Teacher

PROMPTS = ([5, 9, 5, 9, 5, 9, 17], [40, 41, 42, 43, 40, 41], list(range(60, 90)), [7])
LIMITS = DecodeLimits(30, frozenset({END}))
SHAPE = DFlashShape(width=48, block=5, taps=2, layers=2, heads=4, kv_heads=2, head_dim=8, inner=32)


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Small products are not worth a second one, and a busy machine makes them wait for it."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def network(tiny_path: Path) -> Network:
    return Network.load(tiny_path, EXACT)


@pytest.fixture(scope="module")
def teacher(tiny_path: Path) -> Teacher:
    return Teacher.load(tiny_path)


def net() -> DFlash:
    torch.manual_seed(3)
    return DFlash(SHAPE)


def model(network: Network) -> DFlashModel:
    return DFlashModel(net(), (1, 2), torch.arange(0, network.vocabulary_size, 2), network)


def begun(method: DFlashMethod, read: list[int], width: int) -> DFlashDrafter:
    drafter = method.begin()
    torch.manual_seed(len(read))
    hidden = {tap: torch.randn(len(read), width) for tap in drafter.taps}
    drafter.see(TargetOutputs(tuple(read), hidden))
    drafter.extend([*read, 11])
    return drafter


@pytest.mark.parametrize("pieces", [[(0, 9)], [(0, 1), (1, 6), (6, 9)]])
def test_drafting_asks_what_was_learnt(
    network: Network, teacher: Teacher, pieces: list[tuple[int, int]]
) -> None:
    """The logits of a block in a lesson are those of drafting from the same place."""
    text = [3, 1, 4, 1, 5, 9, 2, 6, 5, 35, 8, 97, 93, 23]
    drafting = model(network)
    course = DFlashObjective(teacher, net(), (1, 2), drafting.tokens, places=3)
    states = teacher.states(batch_of([TrainingText(tuple(text), 2)], 99), {1, 2, teacher.layers})
    with torch.no_grad():
        learnt = course._of(torch.tensor(text), torch.tensor([4, 9, 6]), states, 0)

    network.reset()
    read = network.forward([Span(0, range(9), text[:9], 0, taps=(1, 2))])[0].hidden
    features = torch.cat([read[1], read[2]], dim=-1)
    memories = drafting.memories()
    for first, last in pieces:
        [found] = drafting.look([DFlashContext(memories, features[first:last], text[last])])
        assert memories[0].length == last, "what was drafted is forgotten"
    np.testing.assert_allclose(found, learnt.logits[1].numpy(), atol=1e-4)
    assert learnt.tokens.tolist() == [text[5:9], text[10:14], text[7:11]]
    goals = teacher.head(states[teacher.layers][0, 9:13], drafting.tokens)
    torch.testing.assert_close(learnt.goals[1], goals)


def test_a_slot_sees_the_whole_block_and_nothing_of_the_text_after_it(teacher: Teacher) -> None:
    text = torch.tensor([3, 1, 4, 1, 5, 9, 2, 6, 5, 35, 8, 97])
    course = DFlashObjective(teacher, net(), (1, 2), torch.arange(50), places=3)

    def logits(changed: dict[int, int], at: list[int]) -> torch.Tensor:
        tokens = text.clone()
        for place, token in changed.items():
            tokens[place] = token
        batch = batch_of([TrainingText(tuple(tokens.tolist()), 2)], 99)
        states = teacher.states(batch, {1, 2, teacher.layers})
        with torch.no_grad():
            return course._of(tokens, torch.tensor(at), states, 0).logits[0]

    torch.testing.assert_close(logits({}, [5, 6]), logits({6: 77, 7: 78}, [5, 6]))
    torch.testing.assert_close(logits({}, [5]), logits({}, [5, 6]))
    for place in (0, 4, 5):  # read before, and the last token itself
        assert not torch.allclose(logits({}, [5]), logits({place: 77}, [5]))


def test_it_learns(teacher: Teacher) -> None:
    chance = np.random.default_rng(0)
    text = [int(token) for token in chance.integers(0, 80, 24)]
    corpus = Corpus([TrainingText(tuple(text), 2)])
    settings = {**KIND.settings, "block": 4, "inner": 64, "vocabulary": 80, "places": 16}
    course = KIND.begin(teacher, corpus, settings, 0)
    assert isinstance(course, DFlashObjective)
    course._tokens = torch.arange(teacher.vocabulary_size)
    course._drafted[:] = True
    optimiser = torch.optim.AdamW(course.module.parameters(), lr=3e-3)
    losses = []
    for _ in range(60):
        optimiser.zero_grad()
        loss = course.loss(batch_of(corpus.texts, 99), chance)
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    with torch.no_grad():  # the law of the target is no certainty: no guess has a loss of zero
        [guessed] = course._guessed(batch_of(corpus.texts, 99), 99, chance)
        law = guessed.goals.float().log_softmax(-1)
    least = float(-(law.exp() * law).sum(-1).mean())
    assert np.mean(losses[-5:]) - least < 0.4 * (losses[0] - least)
    assert all(parameter.grad is not None for parameter in course.module.parameters())


def test_texts_that_are_too_short_teach_nothing(teacher: Teacher) -> None:
    corpus = Corpus([TrainingText((1, 2, 3), 1)])
    course = KIND.begin(teacher, corpus, dict(KIND.settings), 0)
    loss = course.loss(batch_of(corpus.texts, 99), np.random.default_rng(0))
    loss.backward()
    assert float(loss.detach()) == 0.0
    with torch.no_grad():
        assert course.made(corpus).settings["held_out_chains"] == [0.0] * 7


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, teacher: Teacher) -> Path:
    corpus = Corpus([TrainingText(tuple(range(30)), 5), TrainingText(tuple(range(20, 50)), 3)])
    settings = {**KIND.settings, "inner": 32, "vocabulary": 100}
    with torch.no_grad():
        made_of = KIND.begin(teacher, corpus, settings, 0).made(corpus)
    path = tmp_path_factory.mktemp("dflash")
    trained_drafter.save(path, KIND.name, made_of.settings, made_of.tensors, teacher)
    return path


@pytest.mark.parametrize("shaping", SHAPINGS)
@pytest.mark.parametrize("options", [{}, {"width": 3}, {"num_speculative_tokens": 2}])
def test_the_text_is_that_of_plain_decoding(
    network: Network, folder: Path, shaping: SamplingParams, options: dict[str, int]
) -> None:
    wanted = [plain(network, prompt, shaping, at, LIMITS) for at, prompt in enumerate(PROMPTS)]
    method = made("dflash", network, {"model": str(folder), **options})
    for at, prompt in enumerate(PROMPTS):
        text, decoding = alone(network, prompt, method, shaping, at, LIMITS)
        assert text == wanted[at]
        assert decoding.speculation.fallback is None
        if len(prompt) > 1:
            assert decoding.counters.drafted >= decoding.counters.forwards - 1
    assert together(network, PROMPTS, method, shaping, LIMITS) == wanted


def test_rows_together_draft_as_each_alone(network: Network) -> None:
    method = DFlashMethod(model(network), 4, 1)
    texts = [[1, 2, 3], [4], [5, 6, 7, 8, 9]]
    each = [method.propose([(begun(method, text, network.width), 4)])[0] for text in texts]
    assert method.forwards == 3
    both = method.propose([(begun(method, text, network.width), 4) for text in texts])
    assert method.forwards == 4, "as many passes for three sequences as for one"
    assert [draft.tree for draft in both] == [draft.tree for draft in each]
    assert len({draft.tree.tokens for draft in each}) > 1


def test_a_chain_is_the_likeliest_of_each_slot_and_a_tree_holds_it(network: Network) -> None:
    chain = DFlashMethod(model(network), 4, 1)
    tree = DFlashMethod(model(network), 12, 3)
    [one] = chain.propose([(begun(chain, [1, 2, 3], network.width), 4)])
    [several] = tree.propose([(begun(tree, [1, 2, 3], network.width), 12)])
    assert one.tree.parents == (-1, 0, 1, 2)
    assert all(token % 2 == 0 for token in several.tree.tokens), "of the draft's vocabulary"
    assert len(several.tree) == 12
    assert several.tree.tokens[0] == one.tree.tokens[0]


def test_nothing_is_drafted_before_the_last_tokens_were_shown(network: Network) -> None:
    drafter = DFlashMethod(model(network), 4, 1).begin()
    drafter.extend([1, 2, 3])
    assert not len(drafter.propose(4).tree), "nothing was shown at all"
    hidden = {tap: torch.randn(2, network.width) for tap in drafter.taps}
    drafter.see(TargetOutputs((1, 2), hidden))
    assert not len(drafter.propose(0).tree)
    assert len(drafter.propose(4).tree) == 4
    drafter.extend([8, 9])  # 8 was forced: it is not read yet
    drafter.see(TargetOutputs((3,), {tap: rows[:1] for tap, rows in hidden.items()}))
    assert not len(drafter.propose(4).tree)
    drafter.see(TargetOutputs((8,), {tap: rows[:1] for tap, rows in hidden.items()}))
    assert len(drafter.propose(3).tree) == 3


def test_without_weights_it_says_how_to_make_some(network: Network) -> None:
    with pytest.raises(CapabilityError, match="no dflash drafter for this model") as caught:
        made("dflash", network, {})
    assert "weft train-drafter dflash" in str(caught.value.hint)


def test_weights_that_do_not_fit_are_refused(network: Network, folder: Path) -> None:
    sound = trained_drafter.load(folder, "dflash", network)
    assert loaded(sound, network).net.shape.block == KIND.settings["block"]
    for change in (
        {"heads": 4},
        {"kv_heads": 0},
        {"tap_0": 99},
        {"inner": 33},
        {"layers": 65},
        {"block": 1},
    ):
        path = folder.parent / f"broken-{next(iter(change))}"
        trained_drafter.save(path, "dflash", {**sound.settings, **change}, sound.tensors, network)
        with pytest.raises(CapabilityError):
            made("dflash", network, {"model": str(path)})


def test_no_network_has_such_sizes(teacher: Teacher) -> None:
    corpus = Corpus([TrainingText(tuple(range(30)), 5)])
    with pytest.raises(InputError, match="no network can be trained"):
        KIND.begin(teacher, corpus, {**KIND.settings, "block": 1}, 0)


def test_taps_are_spread() -> None:
    assert spread_taps(30, 3) == (1, 14, 27)
    assert spread_taps(3, 3) == (1,)
    assert spread_taps(1, 3) == (1,)


@pytest.mark.parametrize("option", [{"width": 0}, {"num_speculative_tokens": "many"}])
def test_bad_options_are_refused(
    network: Network, folder: Path, option: dict[str, int | str]
) -> None:
    with pytest.raises(SpecError, match=next(iter(option))):
        made("dflash", network, {"model": str(folder), **option})
