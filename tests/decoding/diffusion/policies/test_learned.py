"""The trained filter as a policy, and as a folder that is read from anywhere."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from tests.decoding.diffusion.lists import begun
from weft.core.errors import CapabilityError, SpecError
from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.caches.exact import NoCache
from weft.decoding.diffusion.catalogue import decoder_config
from weft.decoding.diffusion.denoising import denoise_all
from weft.decoding.diffusion.oracle.adapter import OracleAdapter
from weft.decoding.diffusion.oracle.languages import LANGUAGES, random_question, valid
from weft.decoding.diffusion.policies import learn2pd
from weft.decoding.diffusion.policies.learn2pd import FinalityFilter, Learn2pdPolicy
from weft.decoding.diffusion.ports import DecoderConfig
from weft.decoding.diffusion.schedules import FixedBlocks
from weft.decoding.diffusion.stops import EndOfTextStop

DIGEST = "a" * 64
TRAITS = ModelTraits(189, 3, frozenset({1}), digest=DIGEST)


def thresholding(slots: int, at: float) -> FinalityFilter:
    """A filter that says what a threshold says: each slot's own confidence decides."""
    one = np.eye(slots, dtype=np.float32)
    steep = np.float32(200.0)
    return FinalityFilter(one, np.zeros(slots, np.float32), steep * one,
                    np.full(slots, -steep * np.float32(at)))  # fmt: skip


def plugs(judge: FinalityFilter, threshold: float = 0.5) -> DecoderConfig:
    return DecoderConfig(
        Learn2pdPolicy(judge, threshold), FixedBlocks(judge.slots), NoCache(), EndOfTextStop()
    )


def order(
    judge: FinalityFilter, operation: str = "remove_random", n: int = 5
) -> list[tuple[int, int]]:
    question = random_question(operation, n, np.random.default_rng(0))
    row = begun(question, plugs(judge), 0, room=3)
    denoise_all([row], OracleAdapter())
    return row.counters.order


@pytest.mark.parametrize("name", ["copy", "sort", "remove_random", "shuffle"])
def test_a_filter_that_thresholds_is_the_threshold(name: str) -> None:
    random = np.random.default_rng(5)
    adapter = OracleAdapter()
    for _ in range(5):
        question = random_question(name, 4, random)
        rows = []
        for chosen in (
            plugs(thresholding(12, 0.9)),
            decoder_config("threshold", adapter.traits, {"block": 12, "threshold": 0.9}),
        ):
            row = begun(question, chosen, 0, room=0)
            denoise_all([row], adapter)
            rows.append(row)
        assert rows[0].counters.order == rows[1].counters.order
        assert rows[0].kept.tolist() == rows[1].kept.tolist()
        assert valid(question, rows[0].kept.tolist())


def test_verdicts_are_probabilities_however_large_the_odds() -> None:
    inward, outward = np.full((3, 2), 1e30, np.float32), np.full((2, 3), 1e7, np.float32)
    outward[1] *= -1.0
    judge = FinalityFilter(inward, np.zeros(3, np.float32), outward, np.zeros(2, np.float32))
    assert judge.final(np.ones(2)).tolist() == [1.0, 0.0]


def test_a_filter_that_trusts_nothing_still_goes_on() -> None:
    never = order(thresholding(8, 2.0))
    steps = [step for step, _ in never]
    assert steps == sorted(set(steps))


def test_a_filter_that_trusts_everything_is_done_at_once() -> None:
    assert {step for step, _ in order(thresholding(8, -1.0))} == {0}


def test_slots_behind_the_filter_are_not_judged() -> None:
    question = random_question("copy", 6, np.random.default_rng(0))
    length = LANGUAGES["copy"].length(question)
    short = DecoderConfig(
        Learn2pdPolicy(thresholding(2, 0.5)), FixedBlocks(0), NoCache(), EndOfTextStop()
    )
    row = begun(question, short, 0, room=0)
    denoise_all([row], OracleAdapter())
    first = [slot for step, slot in row.counters.order if step == 0]
    assert first == [0, 1]
    assert row.counters.commits == length


class TestFolders:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        learn2pd.save_filter(tmp_path, thresholding(4, 0.9), DIGEST, {"looks": 7})
        return tmp_path

    def change(self, folder: Path, **values: object) -> None:
        config = json.loads((folder / "config.json").read_text("utf-8"))
        config["weft_filter"] |= values
        (folder / "config.json").write_text(json.dumps(config), "utf-8")

    def test_read_as_written(self, folder: Path) -> None:
        found = learn2pd.load_filter(folder, DIGEST)
        for name, tensor in thresholding(4, 0.9).tensors.items():
            assert np.array_equal(found.tensors[name], tensor)

    @pytest.mark.parametrize("digest", ["b" * 64, ""])
    def test_for_another_model_it_is_refused(self, folder: Path, digest: str) -> None:
        with pytest.raises(CapabilityError, match="trained for another model") as refused:
            learn2pd.load_filter(folder, digest)
        assert "weft train-diffusion learn2pd" in str(refused.value.hint)

    def test_the_preset_refuses_it_too(self, folder: Path) -> None:
        found = decoder_config("learn2pd", TRAITS, {"filter": str(folder)})
        assert isinstance(found.commit, Learn2pdPolicy)
        other = ModelTraits(189, 3, frozenset({1}), digest="b" * 64)
        with pytest.raises(CapabilityError, match="another model"):
            decoder_config("learn2pd", other, {"filter": str(folder)})

    def test_without_one_there_must_be_one_that_comes_with_weft(self) -> None:
        with pytest.raises(CapabilityError, match="no filter for this model"):
            decoder_config("learn2pd", TRAITS, {})

    def test_blocks_that_it_cannot_judge(self, folder: Path) -> None:
        with pytest.raises(SpecError, match="up to 4 slots, not of 5"):
            decoder_config("learn2pd", TRAITS, {"filter": str(folder), "block": 5})

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
            learn2pd.load_filter(folder, DIGEST)

    @pytest.mark.parametrize("name", ["inward", "inner", "outward", "outer"])
    def test_hostile_weights(self, folder: Path, name: str) -> None:
        fine = dict(thresholding(4, 0.9).tensors)
        path = folder / "model.safetensors"
        for wrong in (np.full_like(fine[name], np.nan), fine[name].astype(np.float64),
                      np.zeros(3, np.float32)):  # fmt: skip
            save_file({**fine, name: wrong}, path)
            with pytest.raises(CapabilityError, match=name):
                learn2pd.load_filter(folder, DIGEST)

    def test_no_weights(self, folder: Path) -> None:
        (folder / "model.safetensors").write_bytes(b"no")
        with pytest.raises(CapabilityError, match="cannot be read"):
            learn2pd.load_filter(folder, DIGEST)

    def test_a_folder_of_something_else(self, tmp_path: Path) -> None:
        (tmp_path / "config.json").write_text("{}", "utf-8")
        with pytest.raises(CapabilityError, match="holds no filter"):
            learn2pd.load_filter(tmp_path, DIGEST)
