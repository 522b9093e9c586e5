"""The systems that are compared: the router, a sequential agent, and fixed workflows."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from evals.planning.healing.scenario import Case, Ended
from evals.planning.healing.systems import on_react, on_static, on_weft
from evals.planning.healing.workshop import Workshop
from weft.testing import FakeClock

System = Callable[[Case, Workshop, FakeClock], Coroutine[Any, Any, Ended]]
"""All are told the same case, and see of the faults what calls and probes of the workshop show."""

SYSTEMS: Mapping[str, System] = {
    "weft": on_weft.run,
    "weft_probed": on_weft.run_probed,
    "react": on_react.run,
    "react_probed": on_react.run_probed,
    "static": on_static.run,
    "static_lenient": on_static.run_lenient,
}
