"""Lexical units: kept as published, or verified; placeholders as trained and as drafted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.decoding.speculative.rows import SHAPINGS, alone, plain, together
from tests.serving.local.playback import EXACT
from tests.serving.local.tiny import END
from weft.core.errors import CapabilityError, SpecError
from weft.decoding.network.network import Network
from weft.decoding.sampling import CounterRng, SamplingParams
from weft.decoding.speculative import trained_drafter
from weft.decoding.speculative.acceptance import AcceptAll, AcceptedPath, LossyAcceptor
from weft.decoding.speculative.draft import DraftTree
from weft.decoding.speculative.drafter import TargetOutputs
from weft.decoding.speculative.drafters.trained.lexical_units import (
    LexicalPlaceholders,
    LexicalUnitDrafter,
    LexicalUnitOptions,
    confident_tokens,
)
from weft.decoding.speculative.loop import DecodeLimits
from weft.decoding.speculative.presets import made, preset
from weft.decoding.speculative.target import NetworkTarget
from weft.training.corpus import Corpus, TrainingText, batch_of
from weft.training.drafters.lexical_units import KIND, LexicalUnitsObjective
from weft.training.teacher import AnchorRows, Teacher

PROMPTS = ([5, 9, 5, 9, 5, 9, 17], [40, 41, 42, 43, 40, 41], list(range(60, 90)), [7])
LIMITS = DecodeLimits(30, frozenset({END}))


@pytest.fixture(scope="module")
def network(tiny_path: Path) -> Network:
    return Network.load(tiny_path, EXACT)


@pytest.fixture(scope="module")
def teacher(tiny_path: Path) -> Teacher:
    return Teacher.load(tiny_path)


def placeholders(like: torch.Tensor) -> LexicalPlaceholders:
    torch.manual_seed(7)
    made_up = LexicalPlaceholders(3, (1, 2), 4, like)
    for parameter in made_up.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return made_up.requires_grad_(False)


def test_a_placeholder_is_sure_of_its_token_or_nothing_follows() -> None:
    laws = np.log(np.array([[0.95, 0.05], [0.2, 0.8], [0.99, 0.01]], np.float32))
    assert confident_tokens(laws, 0.9) == [0]
    assert confident_tokens(laws, 0.75) == [0, 1, 0]
    assert confident_tokens(laws, 0.97) == []


def test_confidence_keeps_what_was_drafted_and_is_no_lossless_rule() -> None:
    rule = AcceptAll()
    asked = []

    def law_at(node: int) -> np.ndarray:
        asked.append(node)
        return np.array([0.0, 0.0, 1.0])

    walk = rule.walk_lossy(DraftTree.chain([0, 1]), law_at, CounterRng(0), 5)
    assert walk == AcceptedPath((0, 1), 2, 2)
    assert asked == [-1, 0, 1]
    assert isinstance(rule, LossyAcceptor)
    assert not hasattr(rule, "walk")


def test_placeholders_see_what_training_saw(network: Network, teacher: Teacher) -> None:
    text = [5, 9, 17, 40, 41]
    module = placeholders(teacher.embed([0])[0].detach())
    course = LexicalUnitsObjective(teacher, module, 0.5, 1)
    batch = batch_of([TrainingText((*text, 7, 8, 9, 10), 1)], 64)
    drafter = LexicalUnitDrafter("x", module, LexicalUnitOptions(beta=0.5, anywhere=True))
    drafter.extend(text[:4])
    ahead = np.eye(network.vocabulary_size, dtype=np.float32)[[text[4]]] * 50
    drafter.see(TargetOutputs((text[3],), aux=ahead, under=(0,)))
    drafter.position._behind = 0
    draft = drafter.propose(1)
    assert draft.tree.tokens == (text[4],)
    network.reset()
    target = NetworkTarget(network, SamplingParams(0.0))
    list(target.begin(text[:4]))
    target.verify(draft)
    seen = target.commit(AcceptedPath((0,), 7))
    for anchor, rows in ((3, [0, 1, 2]), (4, [3, 4, 5])):
        places = AnchorRows(torch.tensor([[anchor]]), torch.ones(1, 1, dtype=torch.bool), 3)
        past, _ = course._midway.read(batch)
        expected, labels = course._guessed(batch, past, places)
        found = torch.from_numpy(seen.aux[rows]).log_softmax(-1)
        torch.testing.assert_close(found, expected[0], rtol=1e-4, atol=1e-4)
        whole = batch.tokens[0].tolist()
        assert labels[0].tolist() == whole[anchor + 2 : anchor + 5]


def test_units_are_runs_of_sure_tokens(teacher: Teacher) -> None:
    batch = batch_of([TrainingText((5, 9, 17, 40, 41, 42, 7, 60, 3), 1)], 64)
    course = LexicalUnitsObjective(teacher, placeholders(teacher.embed([0])[0].detach()), 0.5, 1)
    past, _ = course._midway.read(batch)
    laws = teacher.head(past.hidden)[0].softmax(-1)
    true = [float(laws[at, token]) for at, token in enumerate(batch.tokens[0, 1:])]
    for alpha in (0.0, *sorted(true)[1::2]):
        course._alpha = alpha
        for anchor in range(4):
            places = AnchorRows(torch.tensor([[anchor]]), torch.ones(1, 1, dtype=torch.bool), 3)
            inside = course._inside(batch, past, places)[0, 0].tolist()
            runs = [min(true[anchor : anchor + 2 + step]) > alpha for step in range(3)]
            assert inside == runs


def test_training_teaches(teacher: Teacher) -> None:
    chance = np.random.default_rng(0)
    texts = [TrainingText(tuple(map(int, chance.permutation(30)[:5])) * 5, 2) for _ in range(4)]
    settings = {**KIND.settings, "places": 6, "rank": 4}
    course = KIND.begin(teacher, Corpus(texts), settings, 0)
    optimiser = torch.optim.AdamW(course.module.parameters(), lr=3e-2)
    losses = []
    for _ in range(15):
        optimiser.zero_grad()
        loss = course.loss(batch_of(texts, 64), np.random.default_rng(1))
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.8 * losses[0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, teacher: Teacher) -> Path:
    corpus = Corpus([TrainingText(tuple(range(30)), 5), TrainingText(tuple(range(20, 50)), 3)])
    made_of = KIND.begin(teacher, corpus, {**KIND.settings, "rank": 4}, 0).made(corpus)
    path = tmp_path_factory.mktemp("units")
    trained_drafter.save(path, KIND.name, made_of.settings, made_of.tensors, teacher)
    return path


@pytest.mark.parametrize("shaping", SHAPINGS)
@pytest.mark.parametrize("options", [{}, {"beta": 0.0}, {"num_speculative_tokens": 1}])
def test_the_verified_text_is_that_of_plain_decoding(
    network: Network, folder: Path, shaping: SamplingParams, options: dict[str, float]
) -> None:
    wanted = [plain(network, prompt, shaping, at, LIMITS) for at, prompt in enumerate(PROMPTS)]
    method = made("lexical_units_verified", network, {"model": str(folder), **options})
    for number, prompt in enumerate(PROMPTS):
        text, decoding = alone(network, prompt, method, shaping, number, LIMITS)
        assert text == wanted[number]
        assert decoding.speculation.fallback is None
        if options == {"beta": 0.0}:
            assert decoding.counters.drafted >= decoding.counters.forwards
    assert together(network, PROMPTS, method, shaping, LIMITS) == wanted


def test_the_published_rule_keeps_all_it_drafts(network: Network, folder: Path) -> None:
    """With no bar at all every pass writes all placeholders' tokens and its own: another text."""
    method = made("lexical_units", network, {"model": str(folder), "beta": 0.0})
    text, decoding = alone(network, PROMPTS[0], method, SamplingParams(0.0), 0, DecodeLimits(30))
    counters = decoding.counters
    assert counters.accepted == counters.drafted
    # the first pass has nothing to keep; of the others each writes 4 tokens
    assert counters.forwards == 1 + -(-29 // 4)
    assert text != plain(network, PROMPTS[0], SamplingParams(0.0), 0, DecodeLimits(30))


def test_the_published_rule_with_a_bar_that_nothing_passes_is_plain(
    network: Network, folder: Path
) -> None:
    method = made("lexical_units", network, {"model": str(folder), "beta": 1.0})
    for prompt in PROMPTS:
        text, decoding = alone(network, prompt, method, SamplingParams(0.0), 0, LIMITS)
        assert text == plain(network, prompt, SamplingParams(0.0), 0, LIMITS)
        assert decoding.counters.drafted == 0


def test_only_the_verified_one_is_called_lossless(network: Network, folder: Path) -> None:
    assert not preset("lexical_units").lossless
    assert preset("lexical_units_verified").lossless
    with pytest.raises(SpecError, match="beta"):
        made("lexical_units", network, {"model": str(folder), "beta": 1.5})
    with pytest.raises(CapabilityError, match="no lexical_units drafter"):
        made("lexical_units", network, {})
