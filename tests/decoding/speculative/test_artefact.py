from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from weft.core.errors import CapabilityError
from weft.decoding.speculative import trained_drafter
from weft.decoding.speculative.trained_drafter import Fingerprint, TrainedDrafter


@dataclass
class Toy:
    layers: int = 2
    width: int = 4
    vocabulary_size: int = 7
    seed: int = 0
    dtype: torch.dtype = torch.float32

    def embed(self, tokens: Sequence[int]) -> torch.Tensor:
        rows = torch.randn(100, 4, generator=torch.Generator().manual_seed(self.seed))
        return rows.to(torch.bfloat16).to(self.dtype)[list(tokens)]


TOY = Toy()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    settings = {"heads": 2, "accuracy": [[0.5, 0.25], [0.5, 0]], "word": "x"}
    tensors = {
        "w": torch.arange(6, dtype=torch.float16).reshape(2, 3),
        "ids": torch.tensor([4, 0, 6]),
    }
    trained_drafter.save(tmp_path / "made" / "here", "medusa", settings, tensors, TOY)
    return tmp_path / "made" / "here"


def config(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    path = folder / "config.json"
    described = json.loads(path.read_text("utf-8"))
    change(described)
    path.write_text(json.dumps(described), "utf-8")


def test_what_was_saved_is_read(folder: Path) -> None:
    read = trained_drafter.load(folder, "medusa", TOY)
    assert read.whole("heads", 1, 8) == 2
    assert read.table("accuracy", 2) == ((0.5, 0.25), (0.5, 0.0))
    assert read.tensor("w", (2, 3)).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert read.tensor("w", (2, 3)).dtype == torch.float32
    assert read.ids("ids", 7).tolist() == [4, 0, 6]
    assert set(read.settings) == {"heads", "accuracy", "word"}
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "model.safetensors"]


def test_the_precision_a_model_is_loaded_in_does_not_tell_it_from_itself() -> None:
    assert Fingerprint.of(TOY) == Fingerprint.of(Toy(dtype=torch.bfloat16))
    assert Fingerprint.of(TOY) != Fingerprint.of(Toy(seed=1))
    assert Fingerprint.of(Toy(vocabulary_size=70)) != Fingerprint.of(Toy(vocabulary_size=71))


@pytest.mark.parametrize(
    "other", [Toy(layers=3), Toy(width=5), Toy(vocabulary_size=8), Toy(seed=1)]
)
def test_a_drafter_of_another_model_is_refused(folder: Path, other: Toy) -> None:
    with pytest.raises(CapabilityError, match="trained for another model") as refused:
        trained_drafter.load(folder, "medusa", other)
    assert "weft train-drafter medusa --model" in str(refused.value.hint)


def test_a_drafter_of_another_kind_is_refused(folder: Path) -> None:
    with pytest.raises(CapabilityError, match=r"no eagle drafter .* what it holds is 'medusa'"):
        trained_drafter.load(folder, "eagle", TOY)


BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "no folder": (lambda f: (f / "config.json").unlink(), "cannot be read: No such file"),
    "no weights": (lambda f: (f / "model.safetensors").unlink(), "cannot be read"),
    "half the weights": (
        lambda f: (f / "model.safetensors").write_bytes(
            (f / "model.safetensors").read_bytes()[:-1]
        ),
        "cannot be read",
    ),
    "weights of nothing": (lambda f: (f / "model.safetensors").write_bytes(b""), "cannot be read"),
    "a long header": (
        lambda f: (f / "model.safetensors").write_bytes(b"\xff" * 8 + b"{}"), "cannot be read"
    ),
    "no JSON": (lambda f: (f / "config.json").write_text("{"), "is no JSON"),
    "bytes": (lambda f: (f / "config.json").write_bytes(b"\xff\xfe\x00"), "is no JSON"),
    "deep": (lambda f: (f / "config.json").write_text("[" * 200_000), "is no JSON"),
    "a list": (lambda f: (f / "config.json").write_text("[]"), "no JSON object"),
    "too long": (lambda f: (f / "config.json").write_text(" " * 2_000_000), "more than"),
    "a later format": (lambda f: config(f, lambda c: c.update(format=2)), "its format is 2"),
    "no format": (lambda f: config(f, lambda c: c.pop("format")), "its format is None"),
    "for no model": (lambda f: config(f, lambda c: c.update(target=1)), "for which model"),
    "for half a model": (lambda f: config(f, lambda c: c["target"].pop("digest")), "digest None"),
}  # fmt: skip


@pytest.mark.parametrize("how", BROKEN)
def test_broken_folders_are_refused_with_the_way_to_make_one(folder: Path, how: str) -> None:
    change, said = BROKEN[how]
    change(folder)
    with pytest.raises(CapabilityError, match=said) as refused:
        trained_drafter.load(folder, "medusa", TOY)
    assert "train-drafter medusa" in str(refused.value.hint)


def loaded(folder: Path, **settings: object) -> TrainedDrafter:
    config(folder, lambda c: c.update(settings))
    return trained_drafter.load(folder, "medusa", TOY)


@pytest.mark.parametrize("value", [0, 9, 2.0, True, None, "2", 10**30])
def test_a_number_that_is_none(folder: Path, value: object) -> None:
    with pytest.raises(CapabilityError, match="heads is"):
        loaded(folder, heads=value).whole("heads", 1, 8)


@pytest.mark.parametrize(
    "value",
    [None, 3, [], [[0.5]], [[0.5], [0.5, 0.5]], [0.5, 0.5], [[0.5], ["x"]], [[True], [1]],
     [[float("nan")], [1]], [[10**400], [1]], [[0.5], None]],
)  # fmt: skip
def test_a_table_that_is_none(folder: Path, value: object) -> None:
    with pytest.raises(CapabilityError, match="accuracy"):
        loaded(folder, accuracy=value).table("accuracy", 2)


def test_tensors_that_do_not_fit(folder: Path) -> None:
    read = trained_drafter.load(folder, "medusa", TOY)
    with pytest.raises(CapabilityError, match="no tensor v"):
        read.tensor("v", (2, 3))
    with pytest.raises(CapabilityError, match=r"w is \[2, 3\], not \[3, 2\]"):
        read.tensor("w", (3, 2))
    with pytest.raises(CapabilityError, match="no finite numbers"):
        read.tensor("ids", (3,))
    with pytest.raises(CapabilityError, match="no finite numbers"):
        TrainedDrafter(folder, "medusa", {}, {"w": torch.tensor([1.0, float("inf")])}).tensor(
            "w", (2,)
        )


@pytest.mark.parametrize("ids", [[0, 7], [-1, 2], [3, 3], [], [[1]], [0.0], None])
def test_token_ids_that_are_none(folder: Path, ids: Any) -> None:
    tensors = {} if ids is None else {"ids": torch.tensor(ids)}
    with pytest.raises(CapabilityError, match="token ids"):
        TrainedDrafter(folder, "medusa", {}, tensors).ids("ids", 7)


def test_the_one_that_comes_with_weft_is_found_by_its_model(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trained_drafter, "shipped_weights", lambda kind: folder.parent)
    trained_drafter.save(folder.parent / "a", "ppd", {}, {}, TOY)
    trained_drafter.save(folder.parent / "b", "medusa", {}, {}, Toy(seed=5))
    assert trained_drafter.find("medusa", TOY).folder == folder
    assert trained_drafter.find("medusa", Toy(seed=5)).folder == folder.parent / "b"
    with pytest.raises(CapabilityError, match=r"no eagle drafter .* comes with weft") as missing:
        trained_drafter.find("eagle", TOY)
    assert "train-drafter eagle" in str(missing.value.hint)
    with pytest.raises(CapabilityError, match="cannot be read"):
        trained_drafter.find("medusa", TOY, str(tmp_path / "nowhere"))
    assert trained_drafter.find("medusa", TOY, str(folder)).folder == folder
