"""The findings of `weft doctor`: what is installed, what works and what to type.

Changes nothing on the machine and shows no secrets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from weft.serving.doctor.check import Check, Status
from weft.serving.doctor.engine import (
    check_diffusion,
    check_engine,
    check_gateway,
    check_local,
    check_mcp,
    check_otel,
    check_plugin,
    check_png,
    check_postgres,
    check_providers,
    check_ray,
    check_s3,
    check_schedules,
    check_weights,
)
from weft.serving.doctor.machine import (
    check_accelerator,
    check_cores,
    check_disk,
    check_memory,
    check_python,
    check_state_folder,
    check_weft,
)

__all__ = ["CHECKS", "Check", "Status", "examine"]

CHECKS: tuple[Callable[[], Check], ...] = (
    check_python,
    check_weft,
    check_cores,
    check_memory,
    check_disk,
    check_state_folder,
    check_accelerator,
    check_engine,
    check_plugin,
    check_weights,
    check_local,
    check_diffusion,
    check_gateway,
    check_mcp,
    check_providers,
    check_ray,
    check_postgres,
    check_schedules,
    check_s3,
    check_otel,
    check_png,
)


def examine() -> Iterator[Check]:
    """Yield each finding as soon as it is there. Probing vLLM takes about 10 s."""
    for check in CHECKS:
        yield check()
