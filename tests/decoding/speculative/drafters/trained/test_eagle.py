"""EAGLE: its tree and memory by hand, the same text, and drafting as it was trained."""

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
from weft.core.errors import CapabilityError, SpecError
from weft.decoding.network.network import Network
from weft.decoding.sampling import SamplingParams
from weft.decoding.speculative import trained_drafter
from weft.decoding.speculative.draft import ROOT
from weft.decoding.speculative.drafter import TargetOutputs
from weft.decoding.speculative.drafters.trained import eagle
from weft.decoding.speculative.drafters.trained.eagle import (
    DynamicTree,
    EagleDrafter,
    EagleMethod,
    EagleModel,
    EagleOptions,
    EagleSequence,
)
from weft.decoding.speculative.drafters.trained.feature_layers import (
    EagleLayer,
    EagleShape,
    LayerCache,
)
from weft.decoding.speculative.loop import DecodeLimits
from weft.decoding.speculative.presets import made
from weft.training.corpus import Corpus, TokenBatch, TrainingText
from weft.training.drafters.eagle import KIND, EagleObjective
from weft.training.teacher import Teacher

PROMPTS = ([5, 9, 5, 9, 5, 9, 17], [40, 41, 42, 43, 40, 41], list(range(60, 90)), [7])
LIMITS = DecodeLimits(30, frozenset({END}))
SHAPE = EagleShape(width=48, taps=2, heads=4, kv_heads=2, head_dim=8, inner=32)


@pytest.fixture(scope="module")
def network(tiny_path: Path) -> Network:
    return Network.load(tiny_path, EXACT)


@pytest.fixture(scope="module")
def teacher(tiny_path: Path) -> Teacher:
    return Teacher.load(tiny_path)


def layer() -> EagleLayer:
    torch.manual_seed(3)
    return EagleLayer(SHAPE)


def model(network: Network, options: EagleOptions) -> EagleModel:
    tokens = torch.arange(0, network.vocabulary_size, 2)
    return EagleModel(layer(), (1, 2), tokens, network, options)


@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 30), st.integers(0, 1000))
def test_the_tree_has_the_likeliest_nodes_that_were_grown(
    width: int, depth: int, most: int, seed: int
) -> None:
    chance = np.random.default_rng(seed)
    growth = DynamicTree(width)
    grown: dict[tuple[int, ...], float] = {}
    paths: dict[int, tuple[int, ...]] = {ROOT: ()}
    for _ in range(depth):
        frontier = growth.frontier
        tokens = np.stack([chance.permutation(9)[:width] for _ in frontier])
        scores = np.log(chance.uniform(0.01, 0.9, tokens.shape))
        first = len(grown)
        growth.grow(tokens, scores)
        for row, parent in enumerate(frontier):
            for rank in range(width):
                path = (*paths[parent], int(tokens[row, rank]))
                grown[path] = grown.get(paths[parent], 0.0) + float(scores[row, rank])
                paths[first + row * width + rank] = path
        assert len(growth.frontier) == min(width, len(frontier) * width)
    tree = growth.tree(most)
    found = {tuple(tree.tokens[node] for node in tree.path(at)) for at in range(len(tree))}
    best = sorted(grown, key=lambda path: -grown[path])[:most]
    assert found == set(best)


def test_committed_rows_read_at_once_or_in_pieces_are_the_same(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    features = torch.randn(9, 2 * network.width)
    tokens = [3, 1, 4, 1, 5, 9, 2, 6, 5]
    drafting = model(network, EagleOptions(depth=3, width=3, nodes=9))
    memory = LayerCache()
    whole = drafting.draft([EagleSequence(memory, DynamicTree(3), 9)], [(tokens, features)])[0]
    pieces = LayerCache()
    for first, last in ((0, 4), (4, 5), (5, 9)):
        line = EagleSequence(pieces, DynamicTree(3), 9)
        tree = drafting.draft([line], [(tokens[first:last], features[first:last])])[0]
        assert pieces.length == last, "what was drafted is forgotten"
    assert tree == whole
    monkeypatch.setattr(eagle, "PIECE", 2)
    other = [EagleSequence(LayerCache(), DynamicTree(3), 9) for _ in range(2)]
    unread = [(tokens, features), (tokens[:3], features[:3])]
    assert drafting.draft(other, unread)[0] == whole


def test_a_path_is_drafted_as_a_chain_would_be(network: Network) -> None:
    """The mask, the positions and the states of a tree: every node as if its path stood alone."""
    torch.manual_seed(1)
    features = torch.randn(5, 2 * network.width)
    tokens = [3, 1, 4, 1, 5]
    drafting = model(network, EagleOptions(depth=4, width=3, nodes=40))
    line = EagleSequence(LayerCache(), DynamicTree(3), 40)
    tree = drafting.draft([line], [(tokens, features)])[0]
    chained = model(network, EagleOptions(depth=4, width=1, nodes=4))
    chain = chained.draft([EagleSequence(LayerCache(), DynamicTree(1), 4)], [(tokens, features)])[0]
    assert len(chain) == 4
    paths = {tuple(tree.tokens[node] for node in tree.path(at)) for at in range(len(tree))}
    assert tuple(chain.tokens) in paths
    assert {len(path) for path in paths} == {1, 2, 3, 4}


def test_drafting_is_what_was_trained(network: Network, teacher: Teacher) -> None:
    """The unrolled training and the drafter say the same after the same text."""
    text = [5, 9, 17, 40, 41, 42, 7, 60]
    tokens = torch.arange(0, network.vocabulary_size, 2)
    course = EagleObjective(teacher, layer(), (1, 2), tokens, steps=3)
    whole = torch.tensor([text])
    there = torch.ones_like(whole, dtype=torch.bool)
    steps = [logits for logits, _, _ in course._unroll(TokenBatch(whole, there, there))]
    states = teacher.states(TokenBatch(whole, there, there), (1, 2))
    features = torch.cat([states[1], states[2]], dim=-1)[0].bfloat16().float()
    for at in range(2, len(text) - 4):
        # features up to `at`, and the token after it; then the tokens that the text goes on with
        drafting = model(network, EagleOptions(depth=3, width=1, nodes=3))
        line = EagleSequence(LayerCache(), Told(text[at + 2 :]), 3)
        drafting.draft([line], [(text[1 : at + 2], features[: at + 1])])
        assert isinstance(line.growth, Told)
        for step, scores in enumerate(line.growth.scores):
            expected = steps[step][0, at].log_softmax(-1).max().item()
            assert scores == pytest.approx(expected, abs=1e-4)


class Told(DynamicTree):
    """Goes on with given tokens, whatever is likely; notes what was likeliest."""

    def __init__(self, tokens: list[int]) -> None:
        super().__init__(1)
        self._told = tokens
        self.scores: list[float] = []

    def grow(self, tokens: np.ndarray, scores: np.ndarray) -> None:
        self.scores.append(float(scores[0, 0]))
        super().grow(np.array([[self._told[len(self.scores) - 1]]]), scores)


def test_training_teaches(teacher: Teacher) -> None:
    chance = np.random.default_rng(0)
    texts = [TrainingText(tuple(map(int, chance.permutation(20)[:4])) * 5, 4) for _ in range(4)]
    course = KIND.begin(teacher, Corpus(texts), {**KIND.settings, "inner": 32, "unrolled": 2}, 0)
    batch = Corpus(texts).draw(chance, 4, 64)
    optimiser = torch.optim.AdamW(course.module.parameters(), lr=1e-2)
    losses = []
    for _ in range(25):
        optimiser.zero_grad()
        loss = course.loss(batch, chance)
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.87 * losses[0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, teacher: Teacher) -> Path:
    corpus = Corpus([TrainingText(tuple(range(30)), 5), TrainingText(tuple(range(20, 50)), 3)])
    settings = {**KIND.settings, "inner": 32, "vocabulary": 100}
    made_of = KIND.begin(teacher, corpus, settings, 0).made(corpus)
    path = tmp_path_factory.mktemp("eagle")
    trained_drafter.save(path, KIND.name, made_of.settings, made_of.tensors, teacher)
    return path


@pytest.mark.parametrize("shaping", SHAPINGS)
@pytest.mark.parametrize("options", [{}, {"tree": False}, {"depth": 6, "width": 5}])
def test_the_text_is_that_of_plain_decoding(
    network: Network, folder: Path, shaping: SamplingParams, options: dict[str, int]
) -> None:
    wanted = [plain(network, prompt, shaping, at, LIMITS) for at, prompt in enumerate(PROMPTS)]
    method = made("eagle", network, {"model": str(folder), **options})
    for at, prompt in enumerate(PROMPTS):
        text, decoding = alone(network, prompt, method, shaping, at, LIMITS)
        assert text == wanted[at]
        assert decoding.speculation.fallback is None
        if len(prompt) > 1:
            assert decoding.counters.drafted >= decoding.counters.forwards - 1
    assert together(network, PROMPTS, method, shaping, LIMITS) == wanted


def test_rows_together_draft_as_each_alone(network: Network) -> None:
    options = EagleOptions(depth=3, width=2, nodes=6)
    method = EagleMethod(model(network, options))
    torch.manual_seed(2)

    def begun(read: list[int]) -> EagleDrafter:
        drafter = method.begin()
        torch.manual_seed(len(read))
        hidden = {tap: torch.randn(len(read), network.width) for tap in drafter.taps}
        drafter.see(TargetOutputs(tuple(read), hidden))
        drafter.extend([*read, 11])
        return drafter

    texts = [[1, 2, 3], [4], [5, 6, 7, 8, 9]]
    before = method.forwards
    each = [method.propose([(begun(text), 6)])[0] for text in texts]
    assert method.forwards - before == 9
    both = method.propose([(begun(text), 6) for text in texts])
    assert method.forwards - before == 12, "as many passes for three sequences as for one"
    assert [draft.tree for draft in both] == [draft.tree for draft in each]  # type: ignore[union-attr]


def test_nothing_is_drafted_before_the_last_tokens_were_shown(network: Network) -> None:
    drafter = EagleMethod(model(network, EagleOptions(2, 2, 4))).begin()
    drafter.extend([1, 2, 3])
    assert not len(drafter.propose(4).tree), "nothing was shown at all"
    hidden = {tap: torch.randn(2, network.width) for tap in drafter.taps}
    drafter.see(TargetOutputs((1, 2), hidden))
    assert len(drafter.propose(4).tree) == 4
    drafter.extend([8, 9])  # 8 was forced: it is not read yet
    drafter.see(TargetOutputs((3,), {tap: rows[:1] for tap, rows in hidden.items()}))
    assert not len(drafter.propose(4).tree)
    drafter.see(TargetOutputs((8,), {tap: rows[:1] for tap, rows in hidden.items()}))
    assert len(drafter.propose(4).tree) == 4
    assert drafter.memory.length == 4


def test_a_layer_that_was_not_told_all_sizes_is_refused(network: Network, folder: Path) -> None:
    with pytest.raises(CapabilityError, match="no eagle drafter for this model comes with weft"):
        made("eagle", network, {})
    broken = trained_drafter.load(folder, "eagle", network)
    for change in ({"heads": 3}, {"kv_heads": 0}, {"tap_0": 99}, {"inner": 33}, {"taps": 1}):
        settings = {**broken.settings, **change}
        path = folder.parent / f"broken-{next(iter(change))}"
        trained_drafter.save(path, "eagle", settings, broken.tensors, network)
        with pytest.raises(CapabilityError):
            made("eagle", network, {"model": str(path)})


@pytest.mark.parametrize("option", [{"depth": 0}, {"width": "wide"}, {"tree": 1}])
def test_bad_options_are_refused(network: Network, option: dict[str, int]) -> None:
    with pytest.raises(SpecError, match=next(iter(option))):
        made("eagle", network, option)
