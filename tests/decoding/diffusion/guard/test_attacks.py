"""A thousand attacks on a real tokenizer and the real loop: not one forged mask takes effect."""

from __future__ import annotations

from pathlib import Path

import pytest

from evals.diffusion.attacks import BENIGN, Attack, attacks
from evals.diffusion.guard import ATTACKS, Walls
from tests.serving.local.tiny import SPECIAL
from weft.serving.local.tokenizer import LocalTokenizer


@pytest.fixture(scope="module")
def walls(tiny_path: Path) -> Walls:
    return Walls(LocalTokenizer.read(tiny_path), SPECIAL[0], SPECIAL[1:], size=400)


def test_no_forged_mask_takes_effect(walls: Walls) -> None:
    found = attacks(ATTACKS, walls.mask, walls.controls)
    real = [one for one in found if walls.open_by_id(one)]
    assert len(real) > ATTACKS / 3  # by id, these would have been slots
    assert not any(walls.writes_prompt(one) for one in found)
    assert not any(walls.survives(one) for one in found)
    assert all(walls.noticed(one) for one in real)


@pytest.mark.parametrize("text", BENIGN)
def test_harmless_text_goes_through_every_wall(walls: Walls, text: str) -> None:
    benign = Attack(text, "user", exact=False)
    assert walls.passes(benign)
    assert not walls.survives(benign)
