"""The weights that come with weft, on a fixed sample of questions that no training sees.

Bounds are far below what was measured on larger samples: they notice files that are wrong.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from weft.decoding.diffusion.catalogue import decoder_config
from weft.decoding.diffusion.models import load
from weft.decoding.diffusion.oracle.closed_forms import one_step
from weft.decoding.diffusion.oracle.languages import DETERMINISTIC
from weft.decoding.diffusion.policies.learn2pd import Learn2pdPolicy, find_filter
from weft.decoding.network.options import NetworkOptions
from weft.decoding.shipped_weights import shipped_weights
from weft.training.diffusion.list_model import network
from weft.training.diffusion.list_model.session import ListPredictor, questions, validity

FLOAT32 = NetworkOptions(dtype="float32", threads=1)
WEIGHTS = shipped_weights("diffusion")
MOST_BYTES = 10_000_000


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def full() -> ListPredictor:
    return ListPredictor(network.beginning_with(WEIGHTS / "list-full"))


@pytest.mark.parametrize("name", DETERMINISTIC)
def test_one_valid_answer_is_written_in_one_step(full: ListPredictor, name: str) -> None:
    assert validity(full, questions(name, 5, 60), 1) >= 0.95


@pytest.mark.parametrize("name", DETERMINISTIC)
@pytest.mark.parametrize(("folder", "block"), [("list-block", 4), ("list-ar", 0)])
def test_the_twins_write_it_one_by_one(name: str, folder: str, block: int) -> None:
    reader = ListPredictor(network.beginning_with(WEIGHTS / folder), block, causal=not block)
    assert validity(reader, questions(name, 5, 40), 0) >= 0.8


@pytest.mark.parametrize("name", ["shuffle", "insert_random", "remove_random", "latin_row"])
@pytest.mark.parametrize("folder", ["list-full", "list-ar"])
def test_one_by_one_they_know_which_items_are_left(name: str, folder: str) -> None:
    reader = ListPredictor(network.beginning_with(WEIGHTS / folder), causal=folder == "list-ar")
    assert validity(reader, questions(name, 5, 60), 0, np.random.default_rng(0)) >= 0.55


@pytest.mark.parametrize("name", ["shuffle", "replace_random", "insert_random", "remove_random"])
def test_in_one_step_several_valid_answers_get_mixed_up_as_often_as_they_must(
    full: ListPredictor, name: str
) -> None:
    found = validity(full, questions(name, 4, 300), 1, np.random.default_rng(0))
    true = one_step(name, 4)
    assert abs(found - true) < 4.0 * (true * (1.0 - true) / 300) ** 0.5


def test_the_filter_is_that_of_the_full_model() -> None:
    traits = load(WEIGHTS / "list-full", FLOAT32).traits
    assert find_filter(None, traits.digest).slots == 16
    assert isinstance(decoder_config("learn2pd", traits, {}).commit, Learn2pdPolicy)


def test_all_of_them_are_small() -> None:
    ours = [path for path in WEIGHTS.glob("list-*/**/*") if path.is_file()]
    assert sum(path.stat().st_size for path in ours) < MOST_BYTES
