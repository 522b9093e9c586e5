"""What holds for every preset, and what holds for those that only commit: on the oracle."""

from __future__ import annotations

import numpy as np
import pytest

from tests.decoding.diffusion.lists import ORACLE, SAMPLED, answered, begun, whole_answer
from weft.core.errors import SpecError
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.catalogue import NAMES, decoder_config, preset
from weft.decoding.diffusion.denoising import (
    GREEDY,
    DenoisingRow,
    denoise,
    denoise_all,
    denoise_text,
)
from weft.decoding.diffusion.oracle import vocabulary as words
from weft.decoding.diffusion.oracle.adapter import OracleAdapter
from weft.decoding.diffusion.oracle.language import read_question
from weft.decoding.diffusion.oracle.languages import (
    DETERMINISTIC,
    FREE,
    LANGUAGES,
    random_question,
    valid,
)
from weft.decoding.diffusion.policies.confidence import FactorPolicy, ThresholdPolicy
from weft.decoding.diffusion.policies.fixed_pace import EveryStep, FixedPacePolicy
from weft.decoding.sampling import CounterRng, SamplingParams

OURS = (
    *("sequential", "llada", "random", "dilated", "dream_origin", "dream_maskgit"),
    *("dream_margin", "dream_entropy", "dimple", "threshold", "factor", "entropy_threshold"),
    "entropy_bound",
)
ALL = [name for name in NAMES if not preset(name).needs]
SHAPINGS = {"greedy": GREEDY, "sampled": SAMPLED}


def items(operation: str) -> int:
    """A Latin square of order 4 has 16 slots and tells no more than one of order 3."""
    return 3 if operation == "latin_square" else 4


@pytest.mark.parametrize("shaping", SHAPINGS.values(), ids=SHAPINGS)
@pytest.mark.parametrize("name", ALL)
def test_what_is_fixed_stays_and_the_counts_add_up(name: str, shaping: SamplingParams) -> None:
    question = read_question(words.ids_of("shuffle <sep> Adam Mary Tom Eva <sep>"))
    literals = {1: words.ids_of("Tom")[0], 3: words.ids_of("Adam")[0]}
    canvas = Canvas(question.prompt, 6, words.MASK, literals=literals)
    row = DenoisingRow(
        canvas, decoder_config(name, ORACLE.traits, {}), ORACLE.traits, CounterRng(3), shaping
    )
    frozen, held = canvas.frozen.copy(), canvas.ids[canvas.frozen].copy()
    before = 6 - len(literals)
    while not row.over:
        denoise([row], ORACLE)
        np.testing.assert_array_equal(canvas.frozen, frozen)
        np.testing.assert_array_equal(canvas.ids[frozen], held)
        left = int(canvas.undecided.sum())
        assert row.counters.commits - row.counters.remasks == before - left
        # a uniform-state model reads noise there
        masked = canvas.ids[canvas.undecided] == words.MASK
        assert masked.all() or name == "uniform_state"
        assert words.MASK not in canvas.ids[~canvas.undecided]
    assert row.counters.kept + row.counters.discarded <= 6
    assert len(row.counters.order) == row.counters.commits
    assert row.kept.tolist()[1] == literals[1]


@pytest.mark.parametrize("name", ALL)
def test_rows_do_not_depend_on_their_batch(name: str) -> None:
    random = np.random.default_rng(2)
    plugs = decoder_config(name, ORACLE.traits, {})
    questions = [random_question(task, 4, random) for task in ("shuffle", "insert_random", "sort")]
    together = [begun(q, plugs, seed, SAMPLED, room=1) for seed, q in enumerate(questions)]
    denoise_all(together, ORACLE)
    for seed, question in enumerate(questions):
        alone = begun(question, plugs, seed, SAMPLED, room=1)
        denoise_all([alone], ORACLE)
        assert alone.kept.tolist() == together[seed].kept.tolist()
        assert alone.counters == together[seed].counters


@pytest.mark.parametrize("name", OURS)
def test_slots_of_one_at_a_time_make_every_preset_sequential(name: str) -> None:
    """Drawn tokens too: the chance of a slot does not depend on when it is written."""
    random = np.random.default_rng(4)
    for task in ("shuffle", "insert_random"):
        question = random_question(task, 4, random)
        options = {"block": 1}
        rows = [
            begun(question, decoder_config(one, ORACLE.traits, options), 5, SAMPLED)
            for one in ("sequential", name)
        ]
        if name not in ("llada", "dimple") and not name.startswith("dream"):
            denoise_all(rows, ORACLE)
            assert rows[0].kept.tolist() == rows[1].kept.tolist()
            assert rows[0].counters == rows[1].counters
        greedy = [
            begun(question, decoder_config(one, ORACLE.traits, options))
            for one in (name, "sequential")
        ]
        denoise_all(greedy, ORACLE)
        assert greedy[0].kept.tolist() == greedy[1].kept.tolist()
        assert greedy[0].counters == greedy[1].counters


@pytest.mark.parametrize("operation", LANGUAGES)
def test_a_threshold_of_one_writes_what_one_slot_a_step_writes(operation: str) -> None:
    """What is certain may be written with others: it tells them nothing."""
    n = items(operation)
    sure = answered(operation, n, 6, whole_answer(ThresholdPolicy(1.0)))
    one = answered(operation, n, 6, whole_answer(FixedPacePolicy(EveryStep(1), "drawn")))
    for ours, theirs in zip(sure, one, strict=True):
        assert ours.row.kept.tolist() == theirs.row.kept.tolist()
        assert ours.valid
        assert ours.row.counters.forwards <= theirs.row.counters.forwards
    for shaping in SHAPINGS.values():
        sure = answered(operation, n, 6, whole_answer(ThresholdPolicy(1.0, "confidence")), shaping)
        one = answered(operation, n, 6, whole_answer(FixedPacePolicy(EveryStep(1))), shaping)
        assert [a.row.kept.tolist() for a in sure] == [b.row.kept.tolist() for b in one]


@pytest.mark.parametrize("operation", LANGUAGES)
def test_factors_up_to_one_are_never_wrong_where_tokens_are_greedy(operation: str) -> None:
    largest = 3 if operation == "latin_square" else 6
    for n in range(LANGUAGES[operation].shortest, largest + 1):
        for factor in (1.0, 0.5):
            assert all(
                one.valid for one in answered(operation, n, 4, whole_answer(FactorPolicy(factor)))
            )


@pytest.mark.parametrize("operation", LANGUAGES)
def test_one_slot_a_step_is_always_valid(operation: str) -> None:
    n = items(operation)
    for score in ("leftmost", "random", "drawn", "entropy"):
        plugs = whole_answer(FixedPacePolicy(EveryStep(1), score))
        assert all(one.valid for one in answered(operation, n, 3, plugs, SAMPLED))


@pytest.mark.parametrize("operation", DETERMINISTIC)
def test_one_answer_is_found_by_every_preset(operation: str) -> None:
    for name in ALL:
        plugs = decoder_config(name, ORACLE.traits, {})
        shaping = SAMPLED if name in OURS else GREEDY
        for one in answered(operation, 4, 1, plugs, shaping, room=1):
            assert one.valid
            assert one.row.finish == "stop"


def test_some_free_language_goes_wrong_with_every_preset_that_does_not_look() -> None:
    """The tests above would pass for a language without dependence; these have it."""
    for name in ("random", "dilated"):
        plugs = decoder_config(name, ORACLE.traits, {})
        wrong = [op for op in FREE if not all(o.valid for o in answered(op, 4, 8, plugs, SAMPLED))]
        assert "shuffle" in wrong
        assert len(wrong) > 4


def test_literals_are_priors_that_dimple_fills_around() -> None:
    """A skeleton: the third name is given, and the rest agrees with it."""
    question = read_question(words.ids_of("shuffle <sep> Adam Mary Tom <sep>"))
    canvas = Canvas(question.prompt, 3, words.MASK, literals={2: words.ids_of("Adam")[0]})
    row = denoise_text(ORACLE, canvas, decoder_config("dimple", ORACLE.traits, {}), CounterRng(0))

    assert words.spelled(row.kept.tolist()) in ("Mary Tom Adam", "Tom Mary Adam")
    assert valid(question, row.kept.tolist())


def test_blocks_must_fit_those_of_the_model() -> None:
    traits = OracleAdapter(block=4).traits
    for name in OURS:
        assert decoder_config(name, traits, {}) == decoder_config(name, traits, {"block": 4})
        assert decoder_config(name, traits, {"block": 2}) != decoder_config(name, traits, {})
        for block in (0, 3, 8):
            with pytest.raises(SpecError, match=f"blocks of {block} slots do not fit"):
                decoder_config(name, traits, {"block": block})


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("llada", {"steps": -1}),
        ("llada", {"order": "up"}),
        ("llada", {"ends": "soon"}),
        ("llada", {"guidance": -1}),
        ("random", {"count": 0}),
        ("dilated", {"base": 1}),
        ("dream_margin", {"spread": -0.1}),
        ("dimple", {"threshold": 2}),
        ("threshold", {"threshold": "high"}),
        ("threshold", {"by": "luck"}),
        ("threshold", {"block": -1}),
        ("factor", {"factor": 0}),
        ("entropy_bound", {"nats": float("nan")}),
        ("entropy_threshold", {"nats": True}),
        ("sequential", {"threshold": 0.9}),
    ],
)
def test_options_that_cannot_be_are_refused(
    name: str, options: dict[str, str | int | float | bool]
) -> None:
    with pytest.raises(SpecError):
        decoder_config(name, ORACLE.traits, options)


def test_options_reach_the_policies() -> None:
    """Each makes the answer come in other steps."""

    def steps(name: str, **options: str | float) -> int:
        plugs = decoder_config(name, ORACLE.traits, options)
        return answered("parity", 5, 1, plugs)[0].row.counters.forwards

    assert (steps("llada"), steps("llada", steps=2)) == (6, 2)
    assert (steps("llada", block=2), steps("llada", block=2, steps=1)) == (6, 3)
    assert (steps("random"), steps("random", count=3)) == (3, 2)
    assert (steps("dilated"), steps("dilated", base=6)) == (2, 1)
    assert (steps("threshold"), steps("threshold", threshold=0.5)) == (6, 1)
    assert (steps("factor"), steps("factor", factor=9)) == (6, 1)
    assert (steps("entropy_threshold"), steps("entropy_threshold", nats=0.7)) == (6, 1)
    assert (steps("entropy_bound"), steps("entropy_bound", nats=9)) == (6, 1)
    assert (steps("dimple"), steps("dimple", threshold=0.5)) == (6, 1)
    assert (steps("dream_margin"), steps("dream_margin", steps=1)) == (5, 1)
    assert (steps("dream_origin", steps=1), steps("dream_maskgit", steps=2, spread=1)) == (1, 2)


def test_the_plain_one_is_sequential() -> None:
    assert [name for name in NAMES if name in OURS and preset(name).plain] == ["sequential"]
