"""The sections of the evaluation of diffusion models, in the order they are run in."""

from __future__ import annotations

from typing import Final

from evals.sections import Sections

SECTIONS: Final = Sections(
    "diffusion", ("one_step", "lists", "caches", "trained", "filling", "guard", "moderation")
)
