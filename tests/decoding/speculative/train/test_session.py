from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.serving.local.playback import EXACT
from weft.core.errors import InputError
from weft.decoding.network.network import Network
from weft.decoding.speculative import artefact
from weft.decoding.speculative.train.distil import Writing
from weft.decoding.speculative.train.session import CHECKPOINT, Order, Trained, train
from weft.decoding.train.frame import Progress
from weft.decoding.train.news import Measures, News, Writes


@pytest.fixture
def order(tiny_path: Path, tmp_path: Path) -> Order:
    prompts = tmp_path / "prompts.txt"
    prompts.write_text("\n".join(f"the fox and {n}" for n in range(12)), "utf-8")
    return Order(
        kind="ppd",
        model=tiny_path,
        prompts=str(prompts),
        out=tmp_path / "out",
        writing=Writing(max_tokens=10),
        schedule={"steps": 6, "keep_every": 2},
        settings={"prompts": 2, "points": 4},
        threads=1,
    )


def test_from_prompts_to_a_drafter(order: Order, tiny_path: Path) -> None:
    news: list[News] = []
    trained = train(order, on_news=news.append)
    assert isinstance(trained, Trained)
    assert [type(told) for told in news] == [Writes] * 13 + [Progress] * 6 + [Measures]
    assert news[0] == Writes(0, 12)
    assert (trained.kind, trained.steps, trained.texts) == ("ppd", 6, 11)
    network = Network.load(tiny_path, EXACT)
    read = artefact.load(order.out, "ppd", network)
    assert read.whole("prompts", 1, 8) == 2
    assert read.tensor("prompts", (2, network.width)).abs().max() > 0.0
    names = {path.name for path in order.out.iterdir()}
    assert names == {"config.json", "model.safetensors", "corpus.safetensors"}
    with pytest.raises(InputError, match="holds a drafter already"):
        train(order)


def test_stopped_and_resumed_it_makes_the_same_drafter(order: Order, tmp_path: Path) -> None:
    from dataclasses import replace

    whole = replace(order, out=tmp_path / "whole")
    train(whole)
    told: list[News] = []
    assert train(order, on_news=told.append, stop=lambda: len(told) == 5) is None
    with pytest.raises(InputError, match="other prompts, by another model"):
        train(replace(order, writing=Writing(max_tokens=9)), resume=True)
    told.clear()
    assert train(order, resume=True, on_news=told.append, stop=lambda: len(told) > 11) is None
    assert (order.out / CHECKPOINT).exists()
    with pytest.raises(InputError, match="a training that has not ended"):
        train(order)
    told.clear()
    trained = train(order, resume=True, on_news=told.append)
    assert trained is not None
    assert isinstance(told[1], Progress)
    assert told[1].step > 1
    for name in ("config.json", "model.safetensors"):
        assert (order.out / name).read_bytes() == (whole.out / name).read_bytes()
    assert not (order.out / CHECKPOINT).exists()


def test_a_training_that_only_lacked_its_measurement(order: Order) -> None:
    def interrupt(news: News) -> None:
        if isinstance(news, Measures):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(order, on_news=interrupt)
    trained = train(order, resume=True)
    assert trained is not None
    assert trained.loss is None
    assert json.loads((order.out / "config.json").read_text("utf-8"))["weft_drafter"] == "ppd"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kind": "medussa"}, "no drafter 'medussa' can be trained"),
        ({"prompts": "/nowhere.txt"}, "cannot be read"),
        ({"settings": {"heads": 2}}, "no setting 'heads'"),
        ({"schedule": {"steps": 0}}, "nothing can be trained"),
        ({"schedule": {"stepz": 1}}, "stepz"),
        ({"device": "abacus"}, "nothing can be trained on 'abacus'"),
        ({"model": Path("/nowhere")}, "has no tokenizer"),
    ],
)
def test_orders_that_cannot_be(order: Order, change: dict[str, object], said: str) -> None:
    from dataclasses import replace

    with pytest.raises(InputError, match=said):
        train(replace(order, **change))  # type: ignore[arg-type]


def test_nothing_to_resume(order: Order, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing to go on with"):
        train(order, resume=True)
    order.out.write_text("a file")
    with pytest.raises(InputError, match="is no folder"):
        train(order)
