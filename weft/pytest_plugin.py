"""A pytest fixture that repeats recorded runs, so that a test needs neither models nor tools.

Found by pytest through weft's entry point. Imports nothing of weft before a test asks for it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from weft.workflow.flow import Flow
    from weft.workflow.runs.replay import Replay

Replaying = Callable[..., "Replay"]


@pytest.fixture
def weft_replay(request: pytest.FixtureRequest) -> Replaying:
    """Repeats a run that `weft runs export` wrote to a file; the test fails when it differs.

        def test_brief(weft_replay):
            replay = weft_replay("brief.cassette", "../brief.yaml")
            assert replay.result["brief"].startswith("Tea")

    The fixture is `weft_replay(cassette, flow=None, *, strict=False, drift=False)`:

        cassette   the file; relative paths start where the test's file is
        flow       the workflow as it is now: its file, or a `Flow`. Without it, as it was recorded
        strict     a call that differs from its record fails, instead of getting the recorded answer
        drift      differences do not fail the test: look at `differences` and `drifts`

    It returns a `Replay`. Nothing leaves the process, and no time passes.
    """
    folder = request.path.parent

    def replaying(
        cassette: str | Path,
        flow: Flow | str | Path | None = None,
        *,
        strict: bool = False,
        drift: bool = False,
    ) -> Replay:
        from weft.workflow.loader import load_unit
        from weft.workflow.runs.cassette_file import read_cassette
        from weft.workflow.runs.rebuilt import rebuilt_or_recorded
        from weft.workflow.runs.replay import replay

        story = read_cassette(folder / cassette)
        if flow is None:
            unit = rebuilt_or_recorded(story.header)
        elif isinstance(flow, (str, Path)):
            unit = load_unit(folder / flow)
        else:
            unit = flow.unit
        found = replay(story, unit, strict=strict)
        if not found.ok and not drift:
            pytest.fail(f"{cassette}: {found.report()}", pytrace=False)
        return found

    return replaying
