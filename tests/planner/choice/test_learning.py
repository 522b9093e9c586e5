from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.profile import examples
from weft.core.errors import BuildError
from weft.planner.choice import LossRow, StaticPredictor, TrainedPredictor, read_rows, train
from weft.planner.choice.trained import features, ridge, value

SUMS = ["add 3 and 4", "what is 17 times 2", "sum of 8 and 9", "divide 12 by 4", "count 5 apples"]
POEMS = ["a poem of spring", "write a song", "verses on rain", "rhyme with moon", "an ode to tea"]


def rows(noise: float = 0.0) -> list[LossRow]:
    """`maths` is good at sums, `words` at poems."""
    drawn = random.Random(1)
    made = []
    for index in range(60):
        for kind, texts in (("maths", SUMS), ("words", POEMS)):
            text = f"{texts[index % 5]} {index}"
            for model in ("maths", "words"):
                loss = (0.2 if model == kind else 0.8) + drawn.uniform(-noise, noise)
                made.append(LossRow(text, model, loss))
    return made


@given(st.text(max_size=300), st.sampled_from([16, 4096]))
@examples(100)
def test_features_have_length_one_and_stay_in_range(text: str, dimensions: int) -> None:
    vector = features(text, dimensions)
    assert all(0 <= index < dimensions for index in vector)
    length = math.sqrt(sum(entry * entry for entry in vector.values()))
    assert length == pytest.approx(1.0) or not vector
    assert vector == features(text, dimensions)


def test_features_of_any_text_take_bounded_time() -> None:
    assert len(features("x y " * 1_000_000, 4096)) < 100


@given(st.integers(0, 10_000), st.sampled_from([0.01, 1.0, 50.0]))
@examples(40)
def test_ridge_is_the_solution_of_the_normal_equations(seed: int, strength: float) -> None:
    drawn = random.Random(seed)
    size, count = 7, drawn.randint(1, 20)
    rows_ = [
        {i: drawn.gauss(0, 1) for i in range(size) if drawn.random() < 0.6} for _ in range(count)
    ]
    targets = [drawn.gauss(0, 1) for _ in rows_]
    matrix = np.array([[row.get(i, 0.0) for i in range(size)] for row in rows_])
    expected = np.linalg.solve(
        matrix.T @ matrix + strength * np.eye(size), matrix.T @ np.array(targets)
    )
    assert ridge(rows_, targets, size, strength) == pytest.approx(expected.tolist(), abs=1e-4)


def test_ridge_needs_a_strength() -> None:
    with pytest.raises(ValueError, match="positive"):
        ridge([{0: 1.0}], [1.0], 1, 0.0)
    assert ridge([], [], 3, 1.0) == [0.0, 0.0, 0.0]
    assert value({1: 2.0}, [1.0, 3.0]) == 6.0


def test_it_learns_who_is_good_at_what() -> None:
    predictor = train(rows(noise=0.1))
    assert predictor.models == ("maths", "words")
    for text, better in (("what is 31 plus 5", "maths"), ("a song about rain", "words")):
        losses = predictor.losses(text)
        assert min(losses, key=losses.__getitem__) == better


def test_the_same_rows_give_the_same_predictor() -> None:
    first, second = train(rows()), train(rows())
    assert first.losses("a song of 7") == second.losses("a song of 7")


def test_noise_alone_is_learnt_as_the_mean() -> None:
    drawn = random.Random(5)
    noise = [LossRow(f"text {index} {drawn.random()}", "m", drawn.random()) for index in range(80)]
    mean = sum(row.loss for row in noise) / len(noise)
    assert train(noise).losses("something else")["m"] == pytest.approx(mean, abs=0.1)


def test_what_was_learnt_survives_a_file(tmp_path: Path) -> None:
    path = tmp_path / "choice.json"
    predictor = train(rows(), dimensions=256)
    predictor.save(path)
    loaded = TrainedPredictor.load(path)
    for text in (*SUMS, *POEMS, ""):
        assert loaded.losses(text) == pytest.approx(predictor.losses(text), rel=1e-4)


GOOD = {"format": "weft choice 1", "dimensions": 4, "models": {"m": {"mean": 1, "weights": {}}}}


@pytest.mark.parametrize(
    "wrong",
    [
        *([], "{", None, {}, {**GOOD, "format": "weft choice 3"}, {**GOOD, "dimensions": 10**9}),
        *({**GOOD, "dimensions": True}, {**GOOD, "models": {}}, {**GOOD, "models": []}),
        {**GOOD, "models": {"m": {"mean": float("nan"), "weights": {}}}},
        {**GOOD, "models": {"m": {"mean": "1", "weights": {}}}},
        {**GOOD, "models": {"m": {"mean": 10**400, "weights": {}}}},
        "[" * 100_000,
        {**GOOD, "models": {"m": {"mean": 1, "weights": {"4": 1.0}}}},
        {**GOOD, "models": {"m": {"mean": 1, "weights": {"x": 1.0}}}},
        {**GOOD, "models": {"m": {"mean": 1}}},
    ],
)
def test_a_file_that_is_no_predictor_says_why(wrong: Any, tmp_path: Path) -> None:
    path = tmp_path / "choice.json"
    path.write_text(wrong if isinstance(wrong, str) else json.dumps(wrong))
    with pytest.raises(BuildError, match=r"choice\.json is no predictor"):
        TrainedPredictor.load(path)


def test_a_file_that_is_not_there_and_rows_that_are_not() -> None:
    with pytest.raises(BuildError, match="cannot read"):
        TrainedPredictor.load(Path("/nowhere/choice.json"))
    with pytest.raises(BuildError, match="nothing to learn"):
        train([])


def test_rows_are_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "losses.jsonl"
    path.write_text('{"prompt": "a", "model": "m", "loss": 1, "more": 0}\n\n', "utf-8")
    assert read_rows(path) == [LossRow("a", "m", 1.0)]
    with pytest.raises(BuildError, match="cannot read"):
        read_rows(tmp_path / "nothing.jsonl")


@pytest.mark.parametrize(
    "line",
    [
        *("{", "[]", '{"prompt": "a", "model": "m"}', '{"prompt": 1, "model": "m", "loss": 1}'),
        *('{"prompt": "a", "model": "m", "loss": NaN}', "[" * 100_000),
        '{"prompt": "a", "model": "m", "loss": true}',
        '{"prompt": "a", "model": "m", "loss": 1' + "0" * 400 + "}",
    ],
)
def test_a_line_that_is_no_row_is_named(line: str, tmp_path: Path) -> None:
    path = tmp_path / "losses.jsonl"
    path.write_text(f'{{"prompt": "a", "model": "m", "loss": 1}}\n{line}\n', "utf-8")
    with pytest.raises(BuildError, match=r"losses\.jsonl:2"):
        read_rows(path)


def test_a_static_policy_says_the_same_of_everything() -> None:
    assert StaticPredictor({"a": 1.0}).losses("x") == {"a": 1.0}
