"""`--compare`: the same workflow once more, one node at a time, so that a speed-up is measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from weft.cli.exit_codes import ExitCode
from weft.cli.session import Wishes, flow_session

if TYPE_CHECKING:
    from weft.workflow import Flow


async def compared(flow: Flow, inputs: Mapping[str, object], wishes: Wishes) -> ExitCode:
    """Run `flow` one node at a time, then as it is, and report the second with both wall times.

    Each run loads its models afresh, before its clock starts, and neither reuses cached results, so
    that the only difference is how many nodes work at once. One run each: a noisy machine shows.
    """
    from weft.workflow import Models

    alone = replace(wishes, concurrency=1, cache=False, silent=True, events=None, timeline=None)
    async with Models(decode=wishes.decode) as models:
        await models.warm(flow.unit)
        slow = flow_session(flow, inputs, alone, models)
        code = await slow.run()
    if code is not ExitCode.SUCCEEDED:
        return code
    async with Models(decode=wishes.decode) as models:
        await models.warm(flow.unit)
        fast = flow_session(flow, inputs, replace(wishes, cache=False), models)
        fast.serial_wall_s = slow.wall_s
        return await fast.run()
