"""A supervisor lets the longest likely prefix pass, writes nothing itself, and reads no token twice
for nothing.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.decoding.diffusion.network import small
from tests.decoding.diffusion.toy import Everything, Fours
from weft.core.errors import CapabilityError, ModelNotFound, SpecError
from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.catalogue import decoder_config
from weft.decoding.diffusion.denoising import GREEDY, DenoisingRow, denoise_all, denoise_text
from weft.decoding.diffusion.guidance.supervisor import (
    AcceptanceRule,
    CausalSupervisor,
    ExactAcceptance,
    RelativeAcceptance,
    SharedNetwork,
)
from weft.decoding.diffusion.network_adapter import NetworkAdapter
from weft.decoding.diffusion.policies.confidence import ThresholdPolicy
from weft.decoding.diffusion.ports import DecoderConfig
from weft.decoding.diffusion.query import Query
from weft.decoding.diffusion.stops import FirstTerminator
from weft.decoding.network.network import Network
from weft.decoding.network.packing import Span
from weft.decoding.sampling import CounterRng

TRAITS = ModelTraits(small.VOCABULARY, small.MASK, small.ENDS)
PROMPT = [5, 9, 3, 7, 11]
LENGTH = 8


@dataclass
class Drafting:
    """A diffusion model that predicts `token(slot)`, whatever stands on the canvas."""

    token: Callable[[int], int]
    traits: ModelTraits = TRAITS
    passes: list[list[Query]] = field(default_factory=list)

    def forward(self, queries: Sequence[Query]) -> list[NDArray[np.float32]]:
        self.passes.append(list(queries))
        return [self._logits(query) for query in queries]

    def forget(self, row: int) -> None:
        """Nothing is kept."""

    def _logits(self, query: Query) -> NDArray[np.float32]:
        logits = np.zeros((len(query.wanted), self.traits.vocabulary), dtype=np.float32)
        for row, slot in enumerate(query.wanted):
            logits[row, self.token(int(slot))] = 9.0
        return logits


@pytest.fixture(scope="module")
def causal() -> Network:
    return small.network()


def greedy(network: Network, prompt: Sequence[int], count: int) -> list[int]:
    """What the causal model would write, each token from a fresh pass over all before."""
    text = list(prompt)
    for _ in range(count):
        text.append(int(predicted(network, text).argmax()))
    return text[len(prompt) :]


def predicted(network: Network, text: Sequence[int]) -> NDArray[np.float32]:
    slot = 7
    read = network.forward([Span(slot, range(len(text)), list(text), 1)])
    logits: NDArray[np.float32] = read[slot].logits[0]
    return logits


def plugs(network: Network, rule: AcceptanceRule, size: int = LENGTH) -> DecoderConfig:
    return DecoderConfig(
        ThresholdPolicy(0.0),
        Fours(size),
        Everything(),
        FirstTerminator(),
        verifiers=(CausalSupervisor(SharedNetwork(network), rule),),
    )


def supervised(
    drafting: Drafting,
    network: Network,
    rule: AcceptanceRule,
    canvas: Canvas | None = None,
    size: int = LENGTH,
) -> DenoisingRow:
    made = canvas or Canvas(PROMPT, LENGTH, small.MASK)
    return denoise_text(drafting, made, plugs(network, rule, size), CounterRng(0))


def test_a_draft_that_it_would_write_passes_at_once(causal: Network) -> None:
    answer = greedy(causal, PROMPT, LENGTH)
    row = supervised(Drafting(lambda slot: answer[slot - len(PROMPT)]), causal, ExactAcceptance())

    assert row.kept.tolist() == answer
    assert row.counters.forwards == 1
    assert row.counters.passes["supervisor"] == 1


def test_it_never_writes(causal: Network) -> None:
    """Nothing of the draft is what it would write: each step commits the drafter's own token."""
    tokens = [
        next(t for t in range(40) if t != int(predicted(causal, PROMPT).argmax())),
    ]
    while len(tokens) < LENGTH:
        best = int(predicted(causal, [*PROMPT, *tokens]).argmax())
        tokens.append(next(t for t in range(len(tokens), 60) if t != best))
    row = supervised(Drafting(lambda slot: tokens[slot - len(PROMPT)]), causal, ExactAcceptance())

    assert row.kept.tolist() == tokens
    assert row.counters.order == [(step, step) for step in range(LENGTH)]


def test_the_longest_prefix_passes_and_then_its_own_token(causal: Network) -> None:
    answer = greedy(causal, PROMPT, 3)
    wrong = next(t for t in range(60) if t != greedy(causal, [*PROMPT, *answer], 1)[0])
    tokens = [*answer, wrong, *[1] * LENGTH]
    row = supervised(Drafting(lambda slot: tokens[slot - len(PROMPT)]), causal, ExactAcceptance())

    assert [step for step, _ in row.counters.order[:4]] == [0, 0, 0, 1]
    assert row.kept.tolist() == tokens[:LENGTH]


@pytest.mark.parametrize("size", [3, LENGTH])
@pytest.mark.parametrize(
    "rule", [ExactAcceptance(), RelativeAcceptance(4, 0.1), RelativeAcceptance(60, 0.0)]
)
def test_kept_keys_are_those_of_a_fresh_pass(
    causal: Network, rule: AcceptanceRule, size: int
) -> None:
    """The same as a supervisor that reads all from the start in every step."""
    drafting = Drafting(lambda slot: (slot * slot) % 60)
    row = supervised(drafting, causal, rule, size=size)

    text, order, step, start = list(PROMPT), [], 0, 0
    while start < LENGTH:
        stop = min((start // size + 1) * size, LENGTH)
        draft = [drafting.token(len(PROMPT) + at) for at in range(start, stop)]
        passed = 0
        while passed < len(draft) and rule.accepts(
            predicted(causal, [*text, *draft[:passed]]), draft[passed]
        ):
            passed += 1
        count = max(passed, 1)
        order += [(step, start + at) for at in range(count)]
        text += draft[:count]
        start, step = start + count, step + 1
    assert row.counters.order == order
    assert row.kept.tolist() == text[len(PROMPT) :]
    assert row.counters.passes["supervisor"] == step


def test_what_stands_there_passes_unasked(causal: Network) -> None:
    """A literal that the supervisor would never write stops nothing."""
    literal = 59
    assert literal not in greedy(causal, PROMPT, 2)
    answer = greedy(causal, PROMPT, 1)
    after = greedy(causal, [*PROMPT, *answer, literal], 2)
    canvas = Canvas(PROMPT, 4, small.MASK, literals={1: literal})
    tokens = [*answer, 0, *after]
    row = supervised(
        Drafting(lambda slot: tokens[slot - len(PROMPT)]), causal, ExactAcceptance(), canvas
    )

    assert row.kept.tolist() == [*answer, literal, *after]
    assert row.counters.forwards == 1


def test_nothing_passes_behind_the_end(causal: Network) -> None:
    answer = greedy(causal, PROMPT, 1)
    tokens = [*answer, small.END, 3, 3, 3, 3, 3, 3]
    row = supervised(
        Drafting(lambda slot: tokens[slot - len(PROMPT)]), causal, RelativeAcceptance(64, 0.0)
    )

    assert row.kept.tolist() == answer
    assert row.finish == "stop"
    assert (row.counters.commits, row.counters.discarded) == (2, 1)


def test_without_a_prompt_the_first_token_is_the_drafters(causal: Network) -> None:
    row = supervised(Drafting(lambda slot: 4), causal, ExactAcceptance(), Canvas([], 2, small.MASK))

    assert row.kept[0] == 4


def test_long_prompts_are_read_in_pieces(causal: Network) -> None:
    prompt = small.text(600)
    network = small.network(small.llama(max_position_embeddings=1024))
    row = supervised(
        Drafting(lambda slot: 4),
        network,
        RelativeAcceptance(64, 0.0),
        Canvas(prompt, 2, small.MASK),
    )

    assert row.kept.tolist() == [4, 4]
    assert row.counters.passes["supervisor"] == 3


def test_rows_do_not_depend_on_each_other(causal: Network) -> None:
    drafting = Drafting(lambda slot: (slot * slot) % 60)
    settings = plugs(causal, RelativeAcceptance(4, 0.1))
    prompts = [PROMPT, small.text(9, 1), small.text(3, 2)]

    def rows(which: Sequence[int]) -> list[DenoisingRow]:
        made = [Canvas(prompts[at], LENGTH, small.MASK, row=at) for at in which]
        found = [DenoisingRow(one, settings, TRAITS, CounterRng(0), GREEDY) for one in made]
        denoise_all(found, drafting)
        return found

    together = rows([0, 1, 2])
    for at, row in enumerate(together):
        [alone] = rows([at])
        assert alone.counters.order == row.counters.order
        assert alone.kept.tolist() == row.kept.tolist()


def test_a_slot_is_another_texts_once_its_own_is_over(causal: Network) -> None:
    shared = SharedNetwork(causal)
    supervisor = CausalSupervisor(shared)
    first, second = (supervisor.begin(Canvas(PROMPT, 1, 0), TRAITS) for _ in range(2))
    assert {first._slot, second._slot} == {0, 1}
    del first
    gc.collect()
    third, fourth = (supervisor.begin(Canvas(PROMPT, 1, 0), TRAITS) for _ in range(2))
    assert sorted([second._slot, third._slot, fourth._slot]) == [0, 1, 2]


def test_two_threads_may_share_a_network(causal: Network) -> None:
    shared = SharedNetwork(causal)
    drafting = Drafting(lambda slot: (slot * slot) % 60)
    settings = replace(
        plugs(causal, ExactAcceptance()),
        verifiers=(CausalSupervisor(shared, RelativeAcceptance(4, 0.1)),),
    )
    prompts = [PROMPT, small.text(40, 1)]

    def text(prompt: Sequence[int]) -> list[tuple[int, int]]:
        made = Canvas(prompt, LENGTH, small.MASK)
        return denoise_text(drafting, made, settings, CounterRng(0)).counters.order

    wanted = [text(prompt) for prompt in prompts]
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(text, prompts * 4)) == wanted * 4


def test_another_vocabulary_is_refused(causal: Network) -> None:
    other = ModelTraits(small.VOCABULARY + 1025, small.MASK, frozenset())
    supervisor = CausalSupervisor(SharedNetwork(causal))

    for refused in (
        supervisor.check,
        lambda traits: supervisor.begin(Canvas(PROMPT, 1, 0), traits),
    ):
        with pytest.raises(
            CapabilityError, match="64 tokens and the diffusion model 1089"
        ) as caught:
            refused(other)
        assert "tokenizer" in str(caught.value.hint)


def test_vocabularies_are_compared_where_both_are_known(tiny_path: Path, tmp_path: Path) -> None:
    """Dream has 152,064 tokens and Qwen2.5-1.5B 151,936: the same ones, padded differently."""
    supervisor = CausalSupervisor(SharedNetwork(Network.load(tiny_path, small.EXACT)))
    padded = ModelTraits(supervisor.network.vocabulary_size + 128, 0, frozenset(), folder=tiny_path)
    supervisor.check(padded)

    words = json.loads((tiny_path / "tokenizer.json").read_text("utf-8"))
    vocabulary = words["model"]["vocab"]
    (one, first), (two, second) = list(vocabulary.items())[10:12]
    vocabulary[one], vocabulary[two] = second, first
    (tmp_path / "tokenizer.json").write_text(json.dumps(words), "utf-8")
    with pytest.raises(CapabilityError, match=f"token {first} is .* for the supervisor"):
        supervisor.check(replace(padded, folder=tmp_path))


@pytest.mark.parametrize("rule", [ExactAcceptance(), RelativeAcceptance(60, 0.0)])
def test_what_it_does_not_know_does_not_pass(causal: Network, rule: AcceptanceRule) -> None:
    """It is never asked to read tokens beyond its own."""
    traits = ModelTraits(small.VOCABULARY + 128, small.MASK, small.ENDS)
    beyond = small.VOCABULARY + 3
    answer = greedy(causal, PROMPT, 2)
    tokens = [*answer, beyond, *[1] * LENGTH]
    row = supervised(Drafting(lambda slot: tokens[slot - len(PROMPT)], traits), causal, rule)

    assert row.kept.tolist() == tokens[:LENGTH]
    steps = [step for step, _ in row.counters.order]
    assert steps == [0, 0, *range(1, LENGTH - 1)]


def test_the_preset_needs_a_supervisor(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="needs a supervisor"):
        decoder_config("flashdlm", TRAITS, {})
    with pytest.raises(ModelNotFound, match="no supervisor at"):
        decoder_config("flashdlm", TRAITS, {"supervisor": str(tmp_path)})


def test_the_preset_on_two_networks(tiny_path: Path) -> None:
    """A block-causal network drafts, the causal model of a folder supervises."""
    folder = str(tiny_path)
    vocabulary = Network.load(tiny_path, small.EXACT).vocabulary_size
    traits = ModelTraits(vocabulary, 0, frozenset({2}), attention="block_causal", block=4)
    drafter = small.network(small.llama(vocab_size=vocabulary))
    texts = {}
    for rule in ("exact", "relative", "dynamic"):
        chosen = decoder_config("flashdlm", traits, {"supervisor": folder, "rule": rule})
        row = denoise_text(
            NetworkAdapter(drafter, traits), Canvas(PROMPT, 11, 0), chosen, CounterRng(0)
        )
        assert row.counters.commits >= row.counters.kept > 0
        assert row.counters.passes["supervisor"] > 0
        texts[rule] = row.counters.order
    assert [at for _, at in texts["exact"]] == sorted(at for _, at in texts["exact"])
