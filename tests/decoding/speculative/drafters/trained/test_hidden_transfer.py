"""Hidden transfer: rows that enter midway, as trained and as drafted; and the same text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.decoding.speculative.rows import SHAPINGS, alone, plain, together
from tests.serving.local.playback import EXACT
from tests.serving.local.tiny import END
from weft.core.errors import CapabilityError, InputError
from weft.decoding.network.network import Network
from weft.decoding.sampling import SamplingParams
from weft.decoding.speculative import trained_drafter
from weft.decoding.speculative.acceptance import AcceptedPath
from weft.decoding.speculative.draft import DraftProposal
from weft.decoding.speculative.drafters.trained.guess_tree import likeliest_tree
from weft.decoding.speculative.drafters.trained.hidden_transfer import (
    HiddenTransferDrafter,
    HiddenTransferMaps,
    HiddenTransferOptions,
)
from weft.decoding.speculative.loop import DecodeLimits
from weft.decoding.speculative.presets import made
from weft.decoding.speculative.target import NetworkTarget
from weft.training.corpus import Corpus, TrainingText, batch_of
from weft.training.drafters.hidden_transfer import KIND, HiddenTransferObjective
from weft.training.teacher import AnchorRows, LayerwiseTeacher, Teacher, at, draw_anchors

PROMPTS = ([5, 9, 5, 9, 5, 9, 17], [40, 41, 42, 43, 40, 41], list(range(60, 90)), [7])
LIMITS = DecodeLimits(30, frozenset({END}))


@pytest.fixture(scope="module")
def network(tiny_path: Path) -> Network:
    return Network.load(tiny_path, EXACT)


@pytest.fixture(scope="module")
def teacher(tiny_path: Path) -> Teacher:
    return Teacher.load(tiny_path)


def maps(network: Network) -> HiddenTransferMaps:
    torch.manual_seed(5)
    transfer = HiddenTransferMaps(3, network.width)
    torch.nn.init.normal_(transfer.maps, std=0.2)
    return transfer.requires_grad_(False)


@given(st.integers(1, 4), st.integers(1, 5), st.integers(0, 40), st.integers(0, 1000))
def test_the_likeliest_paths_of_independent_levels(
    levels: int, width: int, most: int, seed: int
) -> None:
    logits = np.random.default_rng(seed).normal(size=(levels, 6)).astype(np.float32)
    tree = likeliest_tree(logits, most, width)
    logs = torch.from_numpy(logits).double().log_softmax(-1).numpy()
    known = {(): 0.0}
    for level in range(levels):
        best = np.argsort(-logs[level])[:width]
        ends = [path for path in known if len(path) == level]
        known |= {(*p, int(t)): known[p] + logs[level, t] for p in ends for t in best}
    del known[()]
    found = [tuple(tree.tokens[node] for node in tree.path(at)) for at in range(len(tree))]
    assert len(found) == min(most, len(known))
    assert {*found} == {*sorted(known, key=lambda path: -known[path])[:most]}


def test_rows_are_guesses_from_the_state_of_the_node_above(
    network: Network, teacher: Teacher
) -> None:
    """What the target's pass says of the rows is what training saw, at the root and below it."""
    text = [5, 9, 17, 40, 41]
    course = HiddenTransferObjective(teacher, layer=1, offsets=3, places=1)
    course.module = maps(network)
    batch = batch_of([TrainingText((*text, 7, 8, 9), 1)], 64)
    past, states = course._midway.read(batch, (1,))
    drafter = HiddenTransferDrafter(course.module, 1, HiddenTransferOptions(nodes=2, width=2))
    drafter.extend(text[:4])
    drafter.logits = np.eye(network.vocabulary_size, dtype=np.float32)[[text[4]]] * 50
    draft = drafter.propose(1)
    assert draft.tree.tokens == (text[4],)
    network.reset()
    target = NetworkTarget(network, SamplingParams(0.0))
    list(target.begin(text[:4]))
    target.verify(draft)
    seen = target.commit(AcceptedPath((0,), 7))
    assert seen.under == (3, 4, 5)
    for anchor, rows in ((3, (0, 1, 2)), (4, (3, 4, 5))):
        places = AnchorRows(torch.tensor([[anchor]]), torch.ones(1, 1, dtype=torch.bool), 3)
        moved = course.module(at(states[1], places.anchors)[0])
        hidden = course._midway.onwards(
            LayerwiseTeacher(teacher).read(batch)[0], moved.flatten(0, 1)[None], places, 1
        )
        expected = teacher.head(hidden)[0]
        torch.testing.assert_close(
            torch.from_numpy(seen.aux[list(rows)]), expected, rtol=1e-4, atol=1e-4
        )
    del past


def test_the_rows_leave_the_laws_of_tokens_alone(network: Network) -> None:
    text = [5, 9, 17, 40, 41]
    drafter = HiddenTransferDrafter(maps(network), 1, HiddenTransferOptions())
    drafter.extend(text)
    laws = []
    for draft in (DraftProposal(), drafter.propose(4)):
        network.reset()
        target = NetworkTarget(network, SamplingParams(1.0))
        list(target.begin(text))
        laws.append(target.verify(draft)(-1))
    np.testing.assert_allclose(laws[0], laws[1], atol=1e-6)


def test_places_are_where_an_answer_goes_on() -> None:
    texts = [
        TrainingText(tuple(range(12)), 8),
        TrainingText(tuple(range(9)), 8),
        TrainingText(tuple(range(5)), 1),
    ]
    batch = batch_of(texts, 64)
    places = draw_anchors(batch, 3, 20, np.random.default_rng(0))
    assert places.drawn.tolist() == [[True] * 20, [False] * 20, [True] * 20]
    assert set(places.anchors[0].tolist()) == {7, 8}
    assert set(places.anchors[2].tolist()) == {0, 1}
    assert places.positions[0, :3].tolist() == [places.anchors[0, 0] + step for step in (1, 2, 3)]


def test_training_teaches(teacher: Teacher) -> None:
    chance = np.random.default_rng(0)
    texts = [TrainingText(tuple(map(int, chance.integers(0, 60, 24))), 2) for _ in range(4)]
    course = KIND.begin(teacher, Corpus(texts), {**KIND.settings, "places": 6}, 0)
    optimiser = torch.optim.AdamW(course.module.parameters(), lr=1e-2)
    losses = []
    for _ in range(15):
        optimiser.zero_grad()
        loss = course.loss(batch_of(texts, 64), np.random.default_rng(1))
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.8 * losses[0]
    assert all(not parameter.requires_grad for parameter in teacher.model.parameters())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, teacher: Teacher) -> Path:
    corpus = Corpus([TrainingText(tuple(range(30)), 5), TrainingText(tuple(range(20, 50)), 3)])
    made_of = KIND.begin(teacher, corpus, KIND.settings, 0).made(corpus)
    assert len(made_of.settings["held_out_accuracy"]) == 3  # type: ignore[arg-type]
    path = tmp_path_factory.mktemp("transfer")
    trained_drafter.save(path, KIND.name, made_of.settings, made_of.tensors, teacher)
    return path


@pytest.mark.parametrize("shaping", SHAPINGS)
@pytest.mark.parametrize("options", [{}, {"num_speculative_tokens": 12, "width": 3}])
def test_the_text_is_that_of_plain_decoding(
    network: Network, folder: Path, shaping: SamplingParams, options: dict[str, int]
) -> None:
    wanted = [plain(network, prompt, shaping, at, LIMITS) for at, prompt in enumerate(PROMPTS)]
    method = made("hidden_transfer", network, {"model": str(folder), **options})
    for number, prompt in enumerate(PROMPTS):
        text, decoding = alone(network, prompt, method, shaping, number, LIMITS)
        assert text == wanted[number]
        assert decoding.speculation.fallback is None
        # all but the first pass and those that the end cuts short have something to draft from
        assert decoding.counters.drafted >= decoding.counters.forwards - 2
    assert together(network, PROMPTS, method, shaping, LIMITS) == wanted


def test_maps_for_other_layers_are_refused(
    network: Network, teacher: Teacher, folder: Path, tmp_path: Path
) -> None:
    read = trained_drafter.load(folder, KIND.name, network)
    trained_drafter.save(tmp_path, KIND.name, {**read.settings, "layer": 3}, read.tensors, network)
    with pytest.raises(CapabilityError, match="layer"):
        made("hidden_transfer", network, {"model": str(tmp_path)})
    with pytest.raises(InputError, match="no layer 3"):
        HiddenTransferObjective(teacher, layer=3, offsets=1, places=1)
