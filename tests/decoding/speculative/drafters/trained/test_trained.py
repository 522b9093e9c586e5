"""Drafters that were trained on the tiny model's own texts, at work on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.decoding.speculative.rows import SHAPINGS, alone, plain, together
from tests.serving.local.playback import EXACT
from weft.core.errors import CapabilityError, SpecError
from weft.decoding.network.network import Network
from weft.decoding.sampling import SamplingParams
from weft.decoding.speculative import trained_drafter
from weft.decoding.speculative.acceptance import AcceptedPath, RejectionSampling
from weft.decoding.speculative.draft import ROOT, DraftProposal
from weft.decoding.speculative.drafter import DraftRequest, TargetOutputs
from weft.decoding.speculative.loop import DecodeLimits
from weft.decoding.speculative.pass_costs import PassCosts
from weft.decoding.speculative.presets import MODULES, made
from weft.training.corpus import Corpus, TrainingText
from weft.training.drafters.spec import kind_of
from weft.training.frame import Schedule, Trainer
from weft.training.teacher import Teacher

PROMPTS = [[5, 6, 7, 8], [60, 61], [100, 3, 9, 10, 11], [40], [200, 201, 202]]
LIMITS = DecodeLimits(48)
SHORT = DecodeLimits(24)
SMALL = {"heads": 3, "tokens": 300, "prompts": 3, "ahead": 3, "points": 16, "form": 1}
GREEDY = SamplingParams(0.0)
LOSSLESS = {"medusa": {}, "ppd": {}, "pass": {}, "pass, everywhere": {"below": "every"}}


@dataclass
class Workshop:
    """Trains each kind once."""

    network: Network
    teacher: Teacher
    folder: Path
    made: dict[str, Path] = field(default_factory=dict)

    def options(self, kind: str) -> dict[str, str | bool]:
        """Of the preset of that kind: its weights, and nothing that depends on this machine."""
        still = {} if kind == "pass" else {"measured": False}
        return {"model": str(self.folder_of(kind)), **still}

    def folder_of(self, kind: str) -> Path:
        if kind not in self.made:
            texts = [
                TrainingText(
                    (*prompt, *plain(self.network, prompt, GREEDY, 0, LIMITS)), len(prompt)
                )
                for prompt in PROMPTS
            ]
            corpus, described = Corpus(texts), kind_of(kind)
            settings = {name: SMALL[name] for name in described.settings}
            course = described.begin(self.teacher, corpus, settings, 0)
            rate = 0.02 if kind == "medusa" else 0.1
            schedule = Schedule(steps=80, texts=5, rate=rate)
            Trainer(course, corpus, schedule, self.folder / f"{kind}.checkpoint").run()
            with torch.no_grad():
                drafter = course.made(corpus)
            self.made[kind] = self.folder / kind
            trained_drafter.save(
                self.made[kind], kind, drafter.settings, drafter.tensors, self.network
            )
        return self.made[kind]


@pytest.fixture(scope="module")
def shop(tiny_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    network = Network.load(tiny_path, EXACT)
    return Workshop(network, Teacher.load(tiny_path), tmp_path_factory.mktemp("trained"))


@pytest.mark.parametrize("case", LOSSLESS)
@pytest.mark.parametrize("shaping", SHAPINGS, ids=["greedy", "nucleus"])
def test_the_text_is_the_plain_one(shop: Workshop, case: str, shaping: SamplingParams) -> None:
    name = case.split(",")[0]
    method = made(name, shop.network, {**shop.options(name), **LOSSLESS[case]})
    expected = [
        plain(shop.network, prompt, shaping, seed, SHORT) for seed, prompt in enumerate(PROMPTS)
    ]
    singly = []
    for seed, prompt in enumerate(PROMPTS):
        text, decoding = alone(shop.network, prompt, method, shaping, seed, SHORT)
        assert decoding.speculation.fallback is None
        singly.append(text)
    assert singly == expected
    assert together(shop.network, PROMPTS, method, shaping, SHORT) == expected


@pytest.mark.parametrize("case", LOSSLESS)
def test_what_was_learnt_saves_passes(shop: Workshop, case: str) -> None:
    name = case.split(",")[0]
    method = made(name, shop.network, {**shop.options(name), **LOSSLESS[case]})
    tokens = forwards = 0
    for prompt in PROMPTS:
        _, decoding = alone(shop.network, prompt, method, GREEDY, 0, LIMITS)
        tokens += decoding.counters.tokens
        forwards += decoding.counters.forwards
    # a random model is hard to look ahead in, but the passes that only draft write a token, too
    assert tokens / forwards > {"medusa": 1.5, "ppd": 1.05, "pass": 0.999}[name]


def test_typical_acceptance_keeps_more_than_the_lossless_rule(shop: Workshop) -> None:
    hot = SamplingParams(1.0)
    counts = {}
    for name in ("medusa", "medusa_typical"):
        method = made(name, shop.network, shop.options("medusa"))
        found = [
            alone(shop.network, prompt, method, hot, seed, LIMITS)[1].counters
            for seed, prompt in enumerate(PROMPTS)
        ]
        counts[name] = sum(c.tokens for c in found) / sum(c.forwards for c in found)
    assert counts["medusa_typical"] >= counts["medusa"]
    method = made("medusa_typical", shop.network, shop.options("medusa"))
    greedy, _ = alone(shop.network, PROMPTS[0], method, GREEDY, 0, LIMITS)
    assert greedy == plain(shop.network, PROMPTS[0], GREEDY, 0, LIMITS)


class TestMedusa:
    def test_fewer_nodes_are_the_best_of_them(self, shop: Workshop) -> None:
        found = trained_drafter.find("medusa", shop.network, str(shop.folder_of("medusa")))
        unsure = {**found.settings, "accuracy": [[0.4, 0.3, 0.2]] * 3}
        trained_drafter.save(shop.folder / "unsure", "medusa", unsure, found.tensors, shop.network)
        unsure_here = {**shop.options("medusa"), "model": str(shop.folder / "unsure")}
        method = made("medusa", shop.network, unsure_here)
        drafter = method.begin()
        drafter.see(_seen(shop.network))  # type: ignore[attr-defined]
        whole, few, none = (method.propose([(drafter, most)])[0] for most in (12, 5, 0))
        assert isinstance(whole, DraftProposal)
        assert isinstance(few, DraftProposal)
        assert isinstance(none, DraftProposal)
        assert few.tree.tokens == whole.tree.tokens[:5]
        assert few.tree.parents == whole.tree.parents[:5]
        assert len(whole.tree) == 12
        assert len(none.tree) == 0

    def test_what_was_not_seen_is_not_drafted_from(self, shop: Workshop) -> None:
        method = made("medusa", shop.network, shop.options("medusa"))
        drafter = method.begin()
        drafter.extend((1, 2, 3))
        [draft] = method.propose([(drafter, 8)])
        assert isinstance(draft, DraftProposal)
        assert len(draft.tree) == 0

    def test_forced_tokens_move_the_heads_on(self, shop: Workshop) -> None:
        """The second head's guesses come first where one token was forced."""
        method = made("medusa", shop.network, shop.options("medusa"))
        drafts: list[DraftProposal | BaseException] = []
        for forced in ((), (9,)):
            drafter = method.begin()
            drafter.see(_seen(shop.network))  # type: ignore[attr-defined]
            drafter.extend((1, 2, 3))
            drafter.extend(forced)
            drafts += method.propose([(drafter, 12)])
        straight, moved = (draft.tree for draft in drafts if isinstance(draft, DraftProposal))
        deeper = straight.tokens[straight.children(straight.children(ROOT)[0])[0]]
        assert moved.tokens[moved.children(ROOT)[0]] == deeper

    def test_only_the_tokens_it_knows_are_drafted(self, shop: Workshop) -> None:
        method = made("medusa", shop.network, shop.options("medusa"))
        found = trained_drafter.find("medusa", shop.network, str(shop.folder_of("medusa")))
        drafter = method.begin()
        drafter.see(_seen(shop.network))  # type: ignore[attr-defined]
        [draft] = method.propose([(drafter, 12)])
        assert isinstance(draft, DraftProposal)
        assert set(draft.tree.tokens) <= set(found.ids("tokens", 10_000).tolist())


@pytest.mark.parametrize(
    ("slope", "medusa", "ppd"), [(0.0, 16, 16), (10.0, 1, 3)], ids=["free", "dear"]
)
def test_trees_are_as_large_as_the_machine_likes(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch, slope: float, medusa: int, ppd: int
) -> None:
    costs = PassCosts({64: {1: 1.0, 2: 1.0 + slope, 64: 1.0 + 63 * slope}})
    for name in ("medusa", "ppd"):
        place = f"{MODULES[name]}.costs_of"
        monkeypatch.setattr(place, lambda network: costs)
        folder = shop.folder / f"{name} of {slope}"
        found = trained_drafter.find(name, shop.network, str(shop.folder_of(name)))
        unsure = {**found.settings, "accuracy": [[0.4, 0.3, 0.2]] * 3}
        trained_drafter.save(folder, name, unsure, found.tensors, shop.network)
        method = made(name, shop.network, {"model": str(folder)})
        if name == "medusa":
            assert method.nodes == medusa
        else:
            drafter = method.begin()
            drafter.extend((1, 2, 3))
            seen = TargetOutputs(
                (3,), aux=np.eye(3, 399, 7, np.float32), under=(0, 1, 2), walk=AcceptedPath((), 4)
            )
            drafter.see(seen)  # type: ignore[attr-defined]
            drafter.extend((4,))
            draft = drafter.propose(99)
            assert isinstance(draft, DraftProposal)
            assert len(draft.tree) + len(draft.aux) == ppd


class TestPpd:
    def test_prompt_tokens_hang_as_the_trees_say(self, shop: Workshop) -> None:
        method = made("ppd", shop.network, {**shop.options("ppd"), "rows": 9})
        drafter = method.begin()
        drafter.extend((1, 2, 3))
        first = drafter.propose(9)
        assert isinstance(first, DraftProposal)
        assert len(first.tree) == 0
        assert first.aux.under == (ROOT,) * 3
        assert first.aux.depths == (1, 2, 3)
        logits = np.random.default_rng(0).normal(size=(3, 400)).astype(np.float32)
        seen = TargetOutputs((3,), aux=logits, under=(0, 1, 2), walk=AcceptedPath((), 4))
        drafter.see(seen)  # type: ignore[attr-defined]
        drafter.extend((4,))
        second = drafter.propose(9)
        assert isinstance(second, DraftProposal)
        assert 0 < len(second.tree) <= 9 - len(second.aux)
        best = np.argsort(-logits, axis=1, kind="stable")
        first_children = [second.tree.tokens[node] for node in second.tree.children(ROOT)]
        assert set(first_children) <= set(best[0, :10])
        rows = second.aux.writes[0].rows
        assert rows == tuple(range(1 + len(second.tree), 1 + len(second.tree) + len(second.aux)))
        written = second.aux.writes[0].make(torch.zeros(1))
        per_node: dict[int, int] = {}
        for under, depth, row in zip(second.aux.under, second.aux.depths, written, strict=True):
            step = per_node[under] = per_node.get(under, 0) + 1
            assert depth == second.tree.depths[under - ROOT] + step
            torch.testing.assert_close(row, written[[*second.aux.under].index(under) + step - 1])
        drafter.see(TargetOutputs((4,), walk=AcceptedPath((), 5)))  # type: ignore[attr-defined]
        third = drafter.propose(9)
        assert isinstance(third, DraftProposal)
        assert len(third.tree) == 0

    def test_asked_for_nothing_it_reads_nothing(self, shop: Workshop) -> None:
        drafter = made("ppd", shop.network, shop.options("ppd")).begin()
        drafter.extend((1,))
        draft = drafter.propose(0)
        assert isinstance(draft, DraftProposal)
        assert len(draft.tree) == len(draft.aux) == 0


class TestPass:
    def test_a_chain_with_look_ahead_tokens_at_its_end(self, shop: Workshop) -> None:
        for below, under in (
            ("last", (2, 2, 2)),
            ("every", (-1,) * 3 + (0,) * 3 + (1,) * 3 + (2,) * 3),
        ):
            method = made("pass", shop.network, {**shop.options("pass"), "below": below})
            drafter = method.begin()
            drafter.extend((1, 2, 3))
            logits = np.eye(3, 400, 7, dtype=np.float32)
            drafter.see(TargetOutputs((3,), aux=logits, under=(0, 1, 2), walk=AcceptedPath((), 4)))  # type: ignore[attr-defined]
            drafter.extend((4,))
            draft = drafter.propose(8)
            assert isinstance(draft, DraftProposal)
            assert draft.tree.tokens == (7, 8, 9)
            assert draft.aux.under == under
            again = drafter.propose(8)
            assert isinstance(again, DraftProposal)
            assert len(again.tree) == 0  # what was guessed was for another place
            assert again.aux.under == (ROOT,) * 3

    def test_drawn_drafts_have_their_laws_and_their_rule(self, shop: Workshop) -> None:
        method = made("pass", shop.network, {**shop.options("pass"), "drawn": True})
        assert isinstance(method.acceptor, RejectionSampling)
        logits = np.random.default_rng(0).normal(size=(3, 400)).astype(np.float32) * 3
        shaping = SamplingParams(0.8, top_p=0.9)
        drafts = []
        for seed in (1, 1, 2):
            drafter = method.begin(DraftRequest(shaping, seed))
            drafter.extend((1, 2, 3))
            drafter.see(TargetOutputs((3,), aux=logits, under=(0, 1, 2), walk=AcceptedPath((), 4)))  # type: ignore[attr-defined]
            drafter.extend((4,))
            draft = drafter.propose(8)
            assert isinstance(draft, DraftProposal)
            drafts.append(draft.tree)
        assert drafts[0].tokens == drafts[1].tokens != drafts[2].tokens
        for node, parent in enumerate(drafts[0].parents):
            proposal = drafts[0].proposals[parent]
            np.testing.assert_allclose(proposal.distribution, shaping.distribution(logits[node]))
            assert proposal.kind == "independent"
            assert proposal.distribution[drafts[0].tokens[node]] > 0.0

    def test_drawn_drafts_keep_greedy_texts(self, shop: Workshop) -> None:
        method = made("pass", shop.network, {**shop.options("pass"), "drawn": True})
        text, _ = alone(shop.network, PROMPTS[0], method, GREEDY, 0, LIMITS)
        assert text == plain(shop.network, PROMPTS[0], GREEDY, 0, LIMITS)


@pytest.mark.parametrize(
    ("name", "options"),
    [("medusa", {"num_speculative_tokens": 0}), ("medusa", {"nodes": 3}), ("ppd", {"rows": 0}),
     ("pass", {"below": "all"}), ("pass", {"drawn": "yes"}), ("medusa_typical", {"epsilon": 2.0}),
     ("medusa", {"model": 3})],
)  # fmt: skip
def test_options_that_cannot_be(
    shop: Workshop, name: str, options: Mapping[str, str | int | float | bool]
) -> None:
    kind = "medusa" if name == "medusa_typical" else name
    with pytest.raises(SpecError, match="|".join(options)):
        made(name, shop.network, {**shop.options(kind), **options})


@pytest.mark.parametrize("name", ["medusa", "medusa_typical", "ppd", "pass"])
def test_missing_weights_say_how_to_make_them(shop: Workshop, name: str) -> None:
    with pytest.raises(CapabilityError, match="for this model comes with weft") as missing:
        made(name, shop.network, {})
    assert "weft train-drafter" in str(missing.value.hint)
    folder = shop.folder / f"half {name}"
    settings = {"heads": 3, "prompts": 3, "ahead": 3, "accuracy": [[0.5]] * 3}
    kind = "medusa" if name.startswith("medusa") else name
    trained_drafter.save(folder, kind, settings, {}, shop.network)
    with pytest.raises(CapabilityError, match=r"no tensor|no list"):
        made(name, shop.network, {"model": str(folder)})


def _seen(network: Network) -> TargetOutputs:
    state = torch.randn(2, network.width, generator=torch.Generator().manual_seed(0))
    return TargetOutputs((1, 2), {network.layers: state})
