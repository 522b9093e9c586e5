"""The trained filter as a policy, and as a folder that is read from anywhere."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from tests.decoding.diffusion.lists import begun
from weft.core.errors import CapabilityError, SpecError
from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.caches.whole import Whole
from weft.decoding.diffusion.catalogue import plugs_for
from weft.decoding.diffusion.loop import denoised
from weft.decoding.diffusion.oracle.adapter import OracleAdapter
from weft.decoding.diffusion.oracle.asking import asked
from weft.decoding.diffusion.oracle.languages import LANGUAGES, valid
from weft.decoding.diffusion.plugs import Plugs
from weft.decoding.diffusion.policies import finality
from weft.decoding.diffusion.policies.finality import Finality
from weft.decoding.diffusion.policies.learned import Learned
from weft.decoding.diffusion.schedules.fixed import Fixed
from weft.decoding.diffusion.stops.eotp import EndOfText

DIGEST = "a" * 64
TRAITS = Traits(189, 3, frozenset({1}), digest=DIGEST)


def thresholding(slots: int, at: float) -> Finality:
    """A filter that says what a threshold says: each slot's own confidence decides."""
    one = np.eye(slots, dtype=np.float32)
    steep = np.float32(200.0)
    return Finality(one, np.zeros(slots, np.float32), steep * one,
                    np.full(slots, -steep * np.float32(at)))  # fmt: skip


def plugs(judge: Finality, threshold: float = 0.5) -> Plugs:
    return Plugs(Learned(judge, threshold), Fixed(judge.slots), Whole(), EndOfText())


def order(judge: Finality, operation: str = "remove_random", n: int = 5) -> list[tuple[int, int]]:
    question = asked(operation, n, np.random.default_rng(0))
    row = begun(question, plugs(judge), 0, room=3)
    denoised([row], OracleAdapter())
    return row.counters.order


@pytest.mark.parametrize("name", ["copy", "sort", "remove_random", "shuffle"])
def test_a_filter_that_thresholds_is_the_threshold(name: str) -> None:
    random = np.random.default_rng(5)
    adapter = OracleAdapter()
    for _ in range(5):
        question = asked(name, 4, random)
        rows = []
        for chosen in (
            plugs(thresholding(12, 0.9)),
            plugs_for("threshold", adapter.traits, {"block": 12, "threshold": 0.9}),
        ):
            row = begun(question, chosen, 0, room=0)
            denoised([row], adapter)
            rows.append(row)
        assert rows[0].counters.order == rows[1].counters.order
        assert rows[0].kept.tolist() == rows[1].kept.tolist()
        assert valid(question, rows[0].kept.tolist())


def test_verdicts_are_probabilities_however_large_the_odds() -> None:
    inward, outward = np.full((3, 2), 1e30, np.float32), np.full((2, 3), 1e7, np.float32)
    outward[1] *= -1.0
    judge = Finality(inward, np.zeros(3, np.float32), outward, np.zeros(2, np.float32))
    assert judge.final(np.ones(2)).tolist() == [1.0, 0.0]


def test_a_filter_that_trusts_nothing_still_goes_on() -> None:
    never = order(thresholding(8, 2.0))
    steps = [step for step, _ in never]
    assert steps == sorted(set(steps))


def test_a_filter_that_trusts_everything_is_done_at_once() -> None:
    assert {step for step, _ in order(thresholding(8, -1.0))} == {0}


def test_slots_behind_the_filter_are_not_judged() -> None:
    question = asked("copy", 6, np.random.default_rng(0))
    length = LANGUAGES["copy"].length(question)
    short = Plugs(Learned(thresholding(2, 0.5)), Fixed(0), Whole(), EndOfText())
    row = begun(question, short, 0, room=0)
    denoised([row], OracleAdapter())
    first = [slot for step, slot in row.counters.order if step == 0]
    assert first == [0, 1]
    assert row.counters.commits == length


class TestFolders:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        finality.save(tmp_path, thresholding(4, 0.9), DIGEST, {"looks": 7})
        return tmp_path

    def change(self, folder: Path, **values: object) -> None:
        config = json.loads((folder / "config.json").read_text("utf-8"))
        config["weft_filter"] |= values
        (folder / "config.json").write_text(json.dumps(config), "utf-8")

    def test_read_as_written(self, folder: Path) -> None:
        found = finality.load(folder, DIGEST)
        for name, tensor in thresholding(4, 0.9).tensors.items():
            assert np.array_equal(found.tensors[name], tensor)

    @pytest.mark.parametrize("digest", ["b" * 64, ""])
    def test_for_another_model_it_is_refused(self, folder: Path, digest: str) -> None:
        with pytest.raises(CapabilityError, match="trained for another model") as refused:
            finality.load(folder, digest)
        assert "weft train-diffusion learn2pd" in str(refused.value.hint)

    def test_the_preset_refuses_it_too(self, folder: Path) -> None:
        found = plugs_for("learn2pd", TRAITS, {"filter": str(folder)})
        assert isinstance(found.commit, Learned)
        other = Traits(189, 3, frozenset({1}), digest="b" * 64)
        with pytest.raises(CapabilityError, match="another model"):
            plugs_for("learn2pd", other, {"filter": str(folder)})

    def test_without_one_there_must_be_one_that_comes_with_weft(self) -> None:
        with pytest.raises(CapabilityError, match="no filter for this model"):
            plugs_for("learn2pd", TRAITS, {})

    def test_blocks_that_it_cannot_judge(self, folder: Path) -> None:
        with pytest.raises(SpecError, match="up to 4 slots, not of 5"):
            plugs_for("learn2pd", TRAITS, {"filter": str(folder), "block": 5})

    @pytest.mark.parametrize(
        ("values", "said"),
        [
            ({"slots": 5}, "inward is not"),
            ({"slots": 0}, "slots is 0"),
            ({"hidden": 1 << 40}, "hidden is"),
            ({"format": 2}, "format is 2"),
            ({"model": 7}, "model is 7"),
        ],
    )
    def test_hostile_configs(self, folder: Path, values: dict[str, object], said: str) -> None:
        self.change(folder, **values)
        with pytest.raises(CapabilityError, match=said):
            finality.load(folder, DIGEST)

    @pytest.mark.parametrize("name", ["inward", "inner", "outward", "outer"])
    def test_hostile_weights(self, folder: Path, name: str) -> None:
        fine = dict(thresholding(4, 0.9).tensors)
        path = folder / "model.safetensors"
        for wrong in (np.full_like(fine[name], np.nan), fine[name].astype(np.float64),
                      np.zeros(3, np.float32)):  # fmt: skip
            save_file({**fine, name: wrong}, path)
            with pytest.raises(CapabilityError, match=name):
                finality.load(folder, DIGEST)

    def test_no_weights(self, folder: Path) -> None:
        (folder / "model.safetensors").write_bytes(b"no")
        with pytest.raises(CapabilityError, match="cannot be read"):
            finality.load(folder, DIGEST)

    def test_a_folder_of_something_else(self, tmp_path: Path) -> None:
        (tmp_path / "config.json").write_text("{}", "utf-8")
        with pytest.raises(CapabilityError, match="holds no filter"):
            finality.load(tmp_path, DIGEST)
