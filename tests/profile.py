"""How Hypothesis looks for examples: the same ones in every run, or `HYPOTHESIS_PROFILE=hunt`."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "ci",
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("hunt", settings.get_profile("ci"), derandomize=False)
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "ci")
settings.load_profile(PROFILE)


def examples(number: int) -> settings:
    """So many examples; when hunting, fifty times as many, and new ones every time."""
    return settings(max_examples=number * 50 if PROFILE == "hunt" else number)
