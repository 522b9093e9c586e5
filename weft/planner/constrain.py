"""How firmly a planning model is held to the language of plans: one word. Does not hold it."""

from __future__ import annotations

from typing import Literal

Constrain = Literal["auto", "line", "plan", "never"]
"""auto    the firmest way that the model's client offers
line    each line by a grammar of its own, with the exact types of what may be referred to
plan    one grammar for the whole plan
never   free text; what is wrong is found when it is read
"""
