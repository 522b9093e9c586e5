"""pytest fixtures: recorded runs, recorded answers, evaluations, and what a run did.

Found by pytest through weft's entry point. Imports nothing of weft before a test asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from weft.core.ports import ModelClient
    from weft.evaluation.result import EvaluationResult
    from weft.testing import CassetteModel, RunSpy
    from weft.workflow.document.unit import Unit
    from weft.workflow.flow import Flow
    from weft.workflow.history.replay import RunReplay
    from weft.workflow.history.run_history import RunHistory

Replaying = Callable[..., "RunReplay"]
_NO_FLOW: Final = "\nno workflow is named here; name its file: weft_replay({!r}, 'FLOW.yaml')"


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

    It returns a `RunReplay`. Nothing leaves the process, and no time passes. What cannot be
    repeated, because its workflow is not there, say, fails the test with a sentence.
    """
    folder = request.path.parent

    def replaying(
        cassette: str | Path,
        flow: Flow | str | Path | None = None,
        *,
        strict: bool = False,
        drift: bool = False,
    ) -> RunReplay:
        from weft.core.errors import WeftError
        from weft.workflow.history.cassette_file import read_cassette

        story = None
        try:
            story = read_cassette(folder / cassette)
            found = _replayed(story, None if flow is None else _unit(flow, folder), strict)
        except WeftError as error:
            said = f"{cassette}: {error}"
            if story is not None and flow is None:
                said += _NO_FLOW.format(str(cassette))
        else:
            if found.ok or drift:
                return found
            said = f"{cassette}: {found.report()}"
        pytest.fail(said, pytrace=False)  # here: how weft came to it helps nobody

    return replaying


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option `--weft-record`."""
    parser.getgroup("weft").addoption(
        "--weft-record",
        choices=("none", "once", "all"),
        default="none",
        help="Record answers of real models in cassettes of `weft_cassette`, and baselines of "
        "`weft_evaluate`: once (those that are missing) or all. By default they are only read.",
    )


@pytest.fixture
def weft_cassette(request: pytest.FixtureRequest) -> Iterator[Callable[..., CassetteModel]]:
    """A model client that replays recorded answers: offline, and always the same.

        def test_brief(weft_cassette):
            model = weft_cassette("brief", lambda: OpenAIModel(URL, "qwen3-8b"))
            result = flow.run_sync(topic="tea", models={"small": model})

    The fixture is `weft_cassette(name, make_client=None)`; the file is `cassettes/NAME.json` beside
    the test's. `pytest --weft-record=once` records it with the real client, `all` anew. A request
    that is not recorded fails, and shows how it differs from the recorded ones. `once` keeps no
    failed calls, and writes no file while a request has no answer.
    """
    from weft.testing import CassetteModel

    folder, mode = request.path.parent / "cassettes", request.config.getoption("--weft-record")
    made: list[CassetteModel] = []

    def cassette(name: str, make_client: Callable[[], ModelClient] | None = None) -> CassetteModel:
        made.append(CassetteModel(folder / f"{name}.json", make_client, record=mode))
        return made[-1]

    yield cassette
    for model in made:
        model.save()


@pytest.fixture
def weft_evaluate(request: pytest.FixtureRequest) -> Callable[..., EvaluationResult]:
    """Evaluates a workflow; the test fails when it is worse than its baseline.

        def test_quality(weft_evaluate):
            result = weft_evaluate("sums", "../sums.yaml", "cases.jsonl", "exact", fail_below=0.8)

    The fixture is `weft_evaluate(name, flow, data=None, metric=None, *, fail_below=None,
    margin=0.0, max_unscored=0, **options)`. The baseline is `evaluations/NAME.json` beside the
    test's file: `pytest --weft-record=once` writes a missing one, `all` a new one. Worse means: the
    main metric fell by more than `margin`, with p < 0.05 in a paired test. Paths start where the
    test's file is; `flow` is a file or a `Flow`; `options` are those of `weft.evaluate`.
    """
    folder, mode = request.path.parent, request.config.getoption("--weft-record")

    def evaluating(
        name: str,
        flow: Flow | str | Path,
        data: Any = None,
        metric: Any = None,
        *,
        fail_below: float | None = None,
        margin: float = 0.0,
        max_unscored: int = 0,
        **options: Any,
    ) -> EvaluationResult:
        from weft.evaluation.baseline_file import evaluate_against
        from weft.workflow import load

        found, failures = evaluate_against(
            folder / "evaluations" / f"{name}.json",
            load(folder / flow) if isinstance(flow, str | Path) else flow,
            folder / data if isinstance(data, str) and (folder / data).is_file() else data,
            metric,
            fail_below=fail_below,
            margin=margin,
            max_unscored=max_unscored,
            record=mode,
            **options,
        )
        if failures:
            pytest.fail("; ".join(failures), pytrace=False)
        return found

    return evaluating


@pytest.fixture
def weft_spy() -> RunSpy:
    """A journal in memory with assertions: `flow.run_sync(..., journal=weft_spy)`."""
    from weft.testing import RunSpy

    return RunSpy()


def _unit(flow: Flow | str | Path, folder: Path) -> Unit:
    from weft.workflow.document.loader import load_unit

    return load_unit(folder / flow) if isinstance(flow, (str, Path)) else flow.unit


def _replayed(story: RunHistory, unit: Unit | None, strict: bool) -> RunReplay:
    from weft.workflow.history.recorded_workflow import rebuild_or_read_unit
    from weft.workflow.history.replay import replay

    return replay(story, unit or rebuild_or_read_unit(story.header), strict=strict)
