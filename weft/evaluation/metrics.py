"""The metrics of an evaluation: what was named, as checked `Metric`s with their functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from pydantic import ValidationError

from weft.agents.tools.module import is_file
from weft.core.errors import BuildError, ToolNotFound
from weft.core.ids import is_name
from weft.evaluation import metric as builtin
from weft.workflow.document.spec.defects import first_defect
from weft.workflow.document.spec.evaluation import MetricSpec
from weft.workflow.document.unit import ONLY_PYTHON
from weft.workflow.runtime.tools.functions import build_error, function_in

MODULE: Final = "weft.evaluation.metric"
BUILT_IN: Final[Mapping[str, Callable[..., Any]]] = {
    name: getattr(builtin, name).function for name in ("exact", "numeric", "f1", "schema", "code")
}
JUDGE: Final = "judge"
CHECK: Final = "check"
TRACE: Final = "trace"
MetricLike: TypeAlias = "str | Callable[..., Any] | Mapping[str, Any] | MetricSpec"
MetricsLike: TypeAlias = "MetricLike | Mapping[str, MetricLike]"


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric of an evaluation. `function` is None for a judge and for a node of the workflow.

    `parameters`: those of the function, by position; `trace` among them makes it one that is
    computed from the record, after the run.
    """

    name: str
    spec: MetricSpec
    function: Callable[..., Any] | None = None
    parameters: tuple[str, ...] = ()

    @property
    def is_built_in(self) -> bool:
        """Whether it is one of weft's own functions."""
        return self.spec.use in BUILT_IN

    @property
    def after_run(self) -> bool:
        """Whether it needs the trace of a case, and so is computed from the record."""
        return len(self.parameters) > 2

    @property
    def options(self) -> dict[str, Any]:
        """The options of a built-in metric, as plain data."""
        given: dict[str, Any] = self.spec.model_dump(exclude_none=True, by_alias=True)
        kept = {name: value for name, value in given.items() if name not in ("use", "model")}
        schema = self.spec.answer_schema  # written out, not as the name of a type
        return kept if schema is None else {**kept, "schema": schema}

    @property
    def recorded(self) -> dict[str, Any]:
        """The metric as plain data of a record."""
        return self.spec.model_dump(exclude_none=True, by_alias=True)


def metrics_of(given: Any, folder: Path) -> tuple[Metric, ...]:
    """The metrics `given`: one, or several by name. Files are found in `folder`.

    Raises: `BuildError` for an unknown one, `ToolNotFound` for a missing file.
    """
    if given is None:
        return ()
    single = not isinstance(given, Mapping) or "use" in given
    named = {name_of(given): given} if single else dict(given)
    return tuple(_metric(name, value, folder) for name, value in named.items())


def from_here(given: Any, folder: Path) -> Any:
    """The metrics with files of the working directory named as in `folder`, where they are there.

    Others stay as they are: they are looked for in `folder`.
    """
    if isinstance(given, Mapping) and "use" not in given:
        return {name: from_here(each, folder) for name, each in given.items()}
    use = given["use"] if isinstance(given, Mapping) else given
    reference, _, name = use.rpartition(":") if isinstance(use, str) else ("", "", "")
    if not is_file(reference):
        return given
    file = Path(reference).resolve()
    if not file.is_file() or not file.is_relative_to(folder):
        return given
    moved = f"./{file.relative_to(folder).as_posix()}:{name}"
    return {**given, "use": moved} if isinstance(given, Mapping) else moved


def name_of(given: Any) -> str:
    """The name of a metric that was given without one: `numeric:0.5` is numeric."""
    if callable(given):
        text = getattr(given, "__name__", "metric")
    else:
        use = given.use if isinstance(given, MetricSpec) else given
        text = use["use"] if isinstance(use, Mapping) else str(use)
    first, _, rest = text.partition(":")
    name = rest.rpartition(":")[2] if "." in first else first
    return name if is_name(name) else "metric"


def _metric(name: str, given: Any, folder: Path) -> Metric:
    if not is_name(name) or name == CHECK:
        raise BuildError(f"{name!r} is no name of a metric", hint="letters, digits and _")
    if callable(given):
        spec = MetricSpec(use=f"{ONLY_PYTHON}{name}")
        return Metric(name, spec, given, _parameters(given, name))
    spec = spec_of(given)
    if spec.use == JUDGE:
        if spec.model is None:
            hint = "say who judges: judge:MODEL, or {use: judge, model: big}"
            raise BuildError(f"the metric `{name}` has no model", hint=hint)
        return Metric(name, spec)
    if spec.use in BUILT_IN:
        return Metric(name, spec, BUILT_IN[spec.use], ("case", "outputs"))
    function = _found(name, spec.use, folder)
    return Metric(name, spec, function, _parameters(function, spec.use))


def spec_of(given: Any) -> MetricSpec:
    """The specification of a text such as `numeric:0.01`, or of a mapping. Raises: `BuildError`."""
    if isinstance(given, MetricSpec):
        return given
    if isinstance(given, str):
        use, _, option = given.partition(":")
        key = {"numeric": "tolerance", JUDGE: "model", "exact": "output", "f1": "output"}.get(use)
        given = {"use": use, key: option} if key is not None and option else {"use": given}
    data = dict(given) if isinstance(given, Mapping) else {"use": given}
    if isinstance(data.get("tolerance"), str):
        try:
            data["tolerance"] = float(data["tolerance"])
        except ValueError:
            what = f"{data['tolerance']!r} is no tolerance"
            raise BuildError(what, hint="numeric:0.01") from None
    try:
        return MetricSpec.model_validate(data)
    except ValidationError as error:
        place = ("evaluation", "metrics", "metric")
        defect = first_defect(error, {"evaluation": {"metrics": {"metric": data}}}, place)
        raise BuildError(f"a metric: {defect.message}", hint=defect.hint) from error


def _found(name: str, use: str, folder: Path) -> Callable[..., Any]:
    if use.startswith(ONLY_PYTHON):
        what = f"the metric `{name}` is a function of a Python program"
        raise BuildError(what, hint="put it into a file: ./metrics.py:name")
    if ":" not in use:
        known = ", ".join((*BUILT_IN, JUDGE))
        raise BuildError(f"there is no metric {use!r}", hint=f"{known}, or ./metrics.py:name")
    try:
        return function_in(folder, use)
    except ToolNotFound as error:
        raise build_error(error) from error


def _parameters(function: Callable[..., Any], name: str) -> tuple[str, ...]:
    """Two names, or three: of the case, the outputs and the trace. Raises: `BuildError`."""
    hint = "def exact(case, outputs): ..., or with a third parameter, `trace`"
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError) as error:
        raise BuildError(f"the parameters of {name} are unknown", hint=hint) from error
    named = [each for each in found if each.kind is each.POSITIONAL_OR_KEYWORD]
    needed = [each.name for each in named if each.default is each.empty]
    if len(needed) == 2 and any(each.name == TRACE for each in named[2:3]):
        needed.append(TRACE)
    if len(needed) not in (2, 3):
        raise BuildError(f"{name} takes {len(needed)} arguments", hint=hint)
    return tuple(needed)
