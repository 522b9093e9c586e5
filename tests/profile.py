"""How Hypothesis looks for examples, by `HYPOTHESIS_PROFILE`.

quick     the same examples in every run, a tenth of what a test asks for: `make test`
ci        the same examples in every run, half as many as a test asks for: `make test-full`
thorough  the same examples in every run, as many as a test asks for: `make test-all`
hunt      new ones every time, fifty times as many
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "thorough",
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("ci", settings.get_profile("thorough"), max_examples=50)
settings.register_profile("quick", settings.get_profile("thorough"), max_examples=10)
settings.register_profile("hunt", settings.get_profile("thorough"), derandomize=False)
SHARES = {"quick": 0.1, "ci": 0.5, "hunt": 50.0}
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "ci")
settings.load_profile(PROFILE)


def examples(number: int) -> settings:
    """What a thorough run looks at; others less or more of it."""
    return settings(max_examples=max(1, round(number * SHARES.get(PROFILE, 1.0))))


def share(number: int) -> int:
    """Of so many cases that are always the same, those that this run looks at."""
    return max(1, round(number * min(SHARES.get(PROFILE, 1.0), 1.0)))
