"""The trainer on a toy model: budget, resumption, and what it never sees."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="training needs torch")

import torch

from evals.reasoning.countdown import train
from evals.reasoning.countdown.pack import pack
from evals.reasoning.countdown.problem import problems
from evals.reasoning.countdown.sequences import SMALL, development_problems, training_texts
from evals.reasoning.countdown.trace import Node
from evals.reasoning.countdown.training_record import RECORD, TrainingRecord, unseen_problems
from evals.reasoning.countdown.vocabulary import compact_tokenizer

TOY = train.Plan("apr", tokens=1500, width=32, layers=1, heads=2, batch_tokens=512)
TOKENIZER = compact_tokenizer()


@pytest.fixture(autouse=True)
def small_pools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train, "POOL_PROBLEMS", 4)


def test_a_run_keeps_to_its_tokens_and_goes_on_where_it_stopped(tmp_path: Path) -> None:
    first = train.Training(TOY, tmp_path).run()
    assert 1500 <= first.tokens < 1500 + 512
    steps = first.step
    again = train.Training(replace(TOY, tokens=2500), tmp_path)
    assert (again.at.step, again.at.tokens) == (steps, first.tokens)
    assert again.run().tokens >= 2500
    about = json.loads((tmp_path / "training.json").read_text("utf-8"))
    assert about["position"]["step"] == again.at.step > steps
    assert about["plan"]["material"] == "apr"


def test_a_run_may_begin_with_weights(tmp_path: Path) -> None:
    train.Training(TOY, tmp_path / "base").run()
    begun = train.Training(replace(TOY, material="sos"), tmp_path / "twin", tmp_path / "base")
    base = train.Training(TOY, tmp_path / "base")
    for name, weights in begun.model.state_dict().items():
        assert torch.equal(weights, base.model.state_dict()[name])
    assert begun.at.tokens == 0


def test_pools_are_the_same_every_time_and_within_the_window() -> None:
    plan = replace(TOY, window=100)
    pools = [list(train.pool(plan, index, TOKENIZER)) for index in (0, 0, 1)]
    assert pools[0] == pools[1] != pools[2]
    rows = [row for batch in pools[0] for row in batch]
    assert max(map(len, rows)) <= 100
    assert all(row[0] == TOKENIZER.bos_token_id for row in rows)
    assert all(len(batch) * max(map(len, batch)) <= 512 for batch in pools[0])


@pytest.mark.parametrize("material", ["steps", "apr", "sos"])
def test_every_material_is_made_of_fresh_problems(material: train.Material) -> None:
    keys = {problem.key for problem in development_problems(40)}
    texts = list(training_texts(material, train.RECIPE, 1, 3, keys, len))
    openings = [Node.root(problem).opening for problem in development_problems(40)]
    assert len(texts) >= 3
    assert not any(opening in text for opening in openings for text in texts)


def test_development_and_test_problems_are_in_range_and_held_out() -> None:
    for unseen in (development_problems(20), unseen_problems()):
        assert all(max(problem.numbers) <= SMALL.most for problem in unseen)
        assert {problem.key for problem in unseen} <= train.HELD_OUT


def test_a_run_says_what_it_has_drawn_and_packing_records_it(tmp_path: Path) -> None:
    at = train.Training(TOY, tmp_path / "trained").run()
    pack(tmp_path / "trained", tmp_path / "weights" / "toy")
    (run,) = TrainingRecord.read(tmp_path / "weights" / RECORD.name).runs
    assert (run.name, run.tokens, run.held_out) == ("toy", at.tokens, ("development", "test"))
    assert (run.first_seed, run.last_seed) == (1, at.pool)
    drawn = "".join(
        TOKENIZER.decode(row) for batch in train.pool(TOY, 0, TOKENIZER) for row in batch
    )
    assert len(run.keys(SMALL)) == 4 * at.pool
    for problem in problems(1, 4, SMALL, train.HELD_OUT):
        assert Node.root(problem).opening.strip()[:20] in drawn


def test_numbers_begin_apart() -> None:
    model = train.LlamaForCausalLM(train.configuration(TOY, TOKENIZER))
    train.lay_out_numbers(model, TOKENIZER)
    ids = TOKENIZER.convert_tokens_to_ids([str(n) for n in range(100)])
    rows = torch.nn.functional.normalize(model.get_input_embeddings().weight[ids], dim=1)
    alike = rows @ rows.T - 2 * torch.eye(100)
    assert float(alike.max().detach()) < 0.99
