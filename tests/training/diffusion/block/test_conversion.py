"""A conversion from end to end on a tiny chat model: learnt, kept, gone on with, read again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer

from tests.decoding.diffusion.network import small
from weft.core.errors import CapabilityError, InputError
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.catalogue import decoder_config
from weft.decoding.diffusion.denoising import denoise_text
from weft.decoding.diffusion.models import is_diffusion, tokenizer_folder
from weft.decoding.diffusion.models.loading import load
from weft.decoding.diffusion.network_adapter import NetworkAdapter
from weft.decoding.sampling import CounterRng
from weft.decoding.speculative.trained_drafter import Fingerprint
from weft.decoding.tensor_file import read
from weft.training.diffusion.block import corpora
from weft.training.diffusion.block import learner as learner_module
from weft.training.diffusion.block.conversion import KIND, BlockObjective, BlockSizeSchedule
from weft.training.diffusion.block.corpora import TokenizedBatch
from weft.training.diffusion.block.layout import LayoutBuilder, NoiseSampler
from weft.training.diffusion.block.learner import LoraLearner
from weft.training.diffusion.spec import (
    CHECKPOINT,
    DiffusionTrainingJob,
    DiffusionTrainingResult,
    TrainingListener,
)
from weft.training.frame import EvaluationStarted, StepProgress
from weft.training.teacher import Teacher

SCHEDULE: Mapping[str, int | float] = {"steps": 6, "texts": 2, "rate": 0.02, "longest": 400}
Made = tuple[Path, list[float]]
"""A folder, and the losses on the way to it."""
SETTINGS = {"block": 4, "rank": 2, "grow": 1, "held_out": 3}


def order(model: Path, out: Path, **changed: object) -> DiffusionTrainingJob:
    asked = DiffusionTrainingJob("block", out, None, model, "json", SCHEDULE, SETTINGS, threads=1)
    return replace(asked, **changed)  # type: ignore[arg-type]


def trained(
    asked: DiffusionTrainingJob, resume: bool = False, stop_after: int = 0
) -> tuple[DiffusionTrainingResult | None, list[float]]:
    losses: list[float] = []

    def hear(news: object) -> None:
        if isinstance(news, StepProgress):
            losses.append(news.loss)

    hearing = TrainingListener(hear, lambda: bool(stop_after) and len(losses) + 1 >= stop_after)
    return KIND.train(asked, resume, hearing), losses


@pytest.fixture(scope="module")
def converted(chat_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Made:
    out = tmp_path_factory.mktemp("converted") / "model"
    made, losses = trained(order(chat_model, out))
    assert made is not None
    assert made.steps == len(losses) == 6
    return out, losses


def test_it_is_read_as_a_diffusion_model(converted: Made, chat_model: Path) -> None:
    folder, _ = converted
    assert is_diffusion(folder)
    with pytest.raises(CapabilityError):
        load(folder, small.EXACT)  # its base is nowhere near

    model = load(folder, small.EXACT, find=lambda name: chat_model)
    assert model.traits.attention == "block_causal"
    assert (model.traits.block, model.traits.shifted) == (4, True)
    assert model.traits.mask_id == corpora.ConversationEncoder(chat_model).mask
    assert tokenizer_folder(folder, lambda name: chat_model) == chat_model
    told = json.loads((folder / "config.json").read_text())["weft_diffusion"]
    assert told["base"] == "tiny-chat"
    assert set(told["trained"]) == {"steps", "texts", "before", "after"}
    assert not (folder / CHECKPOINT).exists()


def test_what_was_learnt_is_what_is_read(
    converted: Made, chat_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Merged into the weights, thin maps and mask say what they said beside them."""
    monkeypatch.setattr(learner_module, "computes_bfloat16", lambda _device: False)
    folder, _ = converted
    tensors, _ = read(folder / "adapter.safetensors")
    learner = LoraLearner(chat_model, "cpu", 2, corpora.ConversationEncoder(chat_model).mask)
    with torch.no_grad():
        for name, one in zip(learner.module._names, learner.module.maps, strict=True):
            one.down.copy_(tensors[name + ".lora_a"])
            one.up.copy_(tensors[name + ".lora_b"])
        learner.module.mask.copy_(tensors["embedding_rows"][0])
    assert any(one.up.abs().max() > 0 for one in learner.module.maps)
    texts = corpora.ConversationEncoder(chat_model)
    [text] = corpora.DocumentSource(texts).held_out(1)
    laying = LayoutBuilder(4, texts.mask, texts.end)
    course = BlockObjective(learner, laying, NoiseSampler(), BlockSizeSchedule(4, 0))
    layouts = course._laid([text], laying, np.random.default_rng(0))
    logits, goals = course._predicted(layouts)

    model = load(folder, small.EXACT, find=lambda name: chat_model)
    tokens = laying.slots(text.tokens)
    [noise, _] = NoiseSampler().drawn(len(tokens), text.answer, 4, np.random.default_rng(0))
    slot = int(np.flatnonzero(noise.hidden)[0])
    stop = (slot // 4 + 1) * 4
    canvas = Canvas(tokens[: text.answer].tolist(), stop - text.answer, texts.mask)
    known = np.flatnonzero(~noise.hidden[:stop])
    known = np.union1d(
        known[known >= text.answer], np.arange(text.answer, max(text.answer, stop - 4))
    )
    canvas.commit(known, tokens[known])
    [found] = NetworkAdapter(model.network, model.traits).forward([small.whole(canvas, [slot])])
    keep = np.arange(found.shape[1]) != texts.mask
    assert goals[0] == tokens[slot]
    np.testing.assert_allclose(found[0, keep], logits[0].detach().numpy()[keep], atol=1e-4)


def test_the_base_is_told_as_it_was(chat_model: Path, tmp_path: Path) -> None:
    """Also where the mask is one of the tokens that a model is known by."""
    LoraLearner(chat_model, "cpu", 2, mask_id=5).save(tmp_path, {})
    told = json.loads((tmp_path / "config.json").read_text())["weft_diffusion"]

    assert told["target"] == asdict(Fingerprint.of(Teacher.load(chat_model)))


def test_it_writes(converted: Made, chat_model: Path) -> None:
    model = load(converted[0], small.EXACT, find=lambda name: chat_model)
    [text] = corpora.DocumentSource(corpora.ConversationEncoder(chat_model)).held_out(1)
    plugs = decoder_config(model.preset, model.traits, {})
    canvas = Canvas(text.tokens[: text.answer].tolist(), 9, model.traits.mask_id or 0)
    row = denoise_text(NetworkAdapter(model.network, model.traits), canvas, plugs, CounterRng(0))

    assert row.counters.commits > 0
    assert model.traits.mask_id not in row.kept


def test_it_learns(chat_model: Path, tmp_path: Path) -> None:
    """One text over and over: the same blocks are predicted better and better."""
    file = tmp_path / "talk.jsonl"
    turns = [{"role": "user", "content": "say it"}, {"role": "assistant", "content": "the other"}]
    file.write_text((json.dumps({"messages": turns}) + "\n") * 20, "utf-8")
    schedule = {**SCHEDULE, "steps": 60, "rate": 0.03}
    settings = {**SETTINGS, "rank": 4, "grow": 0}
    made, losses = trained(
        order(chat_model, tmp_path / "out", data=str(file), schedule=schedule, settings=settings)
    )
    assert made is not None
    assert losses[-1] < 0.5 * losses[0]
    told = json.loads((tmp_path / "out" / "config.json").read_text())["weft_diffusion"]["trained"]
    assert told["after"]["cross_entropy"] < told["before"]["cross_entropy"]
    assert told["after"]["accuracy"] > told["before"]["accuracy"]


def test_going_on_ends_where_it_would_have(
    converted: Made, chat_model: Path, tmp_path: Path
) -> None:
    asked = order(chat_model, tmp_path / "out")
    stopped, first = trained(asked, stop_after=3)
    assert stopped is None
    assert len(first) == 3
    with pytest.raises(InputError, match="has not ended"):
        trained(asked)
    made, rest = trained(asked, resume=True)
    assert made is not None
    assert first + rest == converted[1]
    ours, _ = read(asked.out / "adapter.safetensors")
    theirs, _ = read(converted[0] / "adapter.safetensors")
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


@pytest.mark.parametrize("measuring", [1, 2])
def test_stopped_while_it_is_measured_it_ends_the_same(
    converted: Made, chat_model: Path, tmp_path: Path, measuring: int
) -> None:
    """Before anything is learnt, and after all of it."""
    asked, heard = order(chat_model, tmp_path / "out"), list[object]()

    def stop() -> bool:
        return sum(isinstance(news, EvaluationStarted) for news in heard) == measuring

    assert KIND.train(asked, False, TrainingListener(heard.append, stop)) is None
    assert not (asked.out / "config.json").exists()
    made, _ = trained(asked, resume=True)
    assert made is not None
    ours, _ = read(asked.out / "adapter.safetensors")
    theirs, _ = read(converted[0] / "adapter.safetensors")
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


def test_all_weights_can_be_learnt(chat_model: Path, tmp_path: Path) -> None:
    settings = {**SETTINGS, "rank": 0, "shifted": 0, "weighted": 1, "complement": 0}
    schedule = {**SCHEDULE, "steps": 2, "rate": 0.001}
    made, _ = trained(order(chat_model, tmp_path / "out", schedule=schedule, settings=settings))
    assert made is not None
    model = load(tmp_path / "out", small.EXACT)
    assert not model.traits.shifted
    assert tokenizer_folder(tmp_path / "out") == tmp_path / "out"
    held_out = corpora.ConversationEncoder(tmp_path / "out")
    assert held_out.mask == model.traits.mask_id


@pytest.mark.parametrize(
    ("changed", "match"),
    [
        ({"model": None}, "begins with a causal model"),
        ({"settings": {"blocks": 4}}, "no setting 'blocks'"),
        ({"settings": {"block": 0}}, "none"),
        ({"schedule": {"steps": 0}}, "nothing can be trained"),
        ({"schedule": {**SCHEDULE, "longest": 8}}, "cut off before their answers"),
        ({"device": "nowhere"}, "nothing can be trained on 'nowhere'"),
        ({"variant": "full"}, "no use for a variant"),
    ],
)
def test_other_orders_are_refused(
    chat_model: Path, tmp_path: Path, changed: Mapping[str, object], match: str
) -> None:
    with pytest.raises(InputError, match=match):
        trained(replace(order(chat_model, tmp_path / "out"), **changed))  # type: ignore[arg-type]


def test_a_model_without_a_reserved_token_is_refused(chat_model: Path, tmp_path: Path) -> None:
    """Its two spare tokens are those of unknown text, and one that the template writes."""
    folder = tmp_path / "full"
    shutil.copytree(chat_model, folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.unk_token = "<|endoftext|>"
    tokenizer.chat_template += "<|reserved|>"
    tokenizer.save_pretrained(folder)
    with pytest.raises(InputError, match="no reserved token"):
        corpora.ConversationEncoder(folder)


def test_conversations_end_with_answers(chat_model: Path, tmp_path: Path) -> None:
    file = tmp_path / "talk.jsonl"
    file.write_text('{"messages": [{"role": "user", "content": "hello"}]}\n', "utf-8")
    with pytest.raises(InputError, match="conversation 1 does not end with an answer"):
        corpora.read_conversations(file, corpora.ConversationEncoder(chat_model))


def test_blocks_double() -> None:
    growth = BlockSizeSchedule(8, 10)
    assert [growth.at(step) for step in (0, 9, 10, 20, 29, 30, 1000)] == [1, 1, 2, 4, 4, 8, 8]
    assert BlockSizeSchedule(8, 0).at(0) == 8


def test_made_texts_are_others_in_every_step(chat_model: Path) -> None:
    made = corpora.DocumentSource(corpora.ConversationEncoder(chat_model))
    one, other = (made.draw(np.random.default_rng([0, step]), 2, 400) for step in (0, 1))
    again = made.draw(np.random.default_rng([0, 0]), 2, 400)

    assert _ids(one) == _ids(again)
    assert _ids(one) != _ids(other)
    assert one.learnt_tokens == sum(len(page.tokens) - page.answer for page in one.texts)


def test_each_second_made_text_is_a_form_where_it_is_whole(chat_model: Path) -> None:
    texts = corpora.ConversationEncoder(chat_model)
    chance = np.random.default_rng
    plain, form = corpora.DocumentSource(texts).draw(chance(0), 2, 400).texts
    assert plain.form is None
    assert form.form is not None
    assert tuple(form.tokens[form.answer :]) == (*form.form.tokens, texts.end)
    _, cut = corpora.DocumentSource(texts).draw(chance(0), 2, len(form.tokens) - 1).texts
    assert cut.form is None
    _, none = corpora.DocumentSource(texts, forms=False).draw(chance(0), 2, 400).texts
    assert none.form is None


def _ids(pages: TokenizedBatch) -> list[list[int]]:
    return [page.tokens.tolist() for page in pages.texts]
