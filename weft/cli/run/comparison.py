"""`--compare`: the same workflow again, one node at a time, to measure the speed-up."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from weft.cli.exit_code import ExitCode
from weft.cli.run.session import CommandOptions, flow_session, journal_for
from weft.core.errors import InputError
from weft.core.ids import NodeId, matches

if TYPE_CHECKING:
    from weft.workflow import Flow


async def compare_serial(
    flow: Flow, inputs: Mapping[str, object], command: CommandOptions, repeat: Collection[str] = ()
) -> ExitCode:
    """Run `flow` one node at a time, then as it is, and report the second with both wall times.

    Each run loads its models anew, before its clock starts, and neither reuses cached results, so
    that only the concurrency differs. One run each: a noisy machine shows. Both are recorded.
    `repeat`: nodes, or patterns of nodes, whose calls that must not be repeated may be made twice.

    Raises: `InputError` where such a call would be made twice without `repeat`.
    """
    from weft.workflow import Models

    _check_effects(flow, repeat)
    alone = replace(
        command, concurrency=1, cache=False, silent=True, events=None, timeline=None, run=None
    )
    with journal_for(flow, command) as journal:
        async with Models(decode=command.decode) as models:
            await models.warm(flow.unit)
            slow = flow_session(flow, inputs, alone, models, journal)
            code = await slow.run()
        if code is not ExitCode.SUCCEEDED:
            return code
        async with Models(decode=command.decode) as models:
            await models.warm(flow.unit)
            fast = flow_session(flow, inputs, replace(command, cache=False), models, journal)
            fast.serial_wall_s = slow.wall_s
            return await fast.run()


def _check_effects(flow: Flow, repeat: Collection[str]) -> None:
    """Raises `InputError` where a call would be made twice that `repeat` does not allow."""
    from weft.workflow.document.check.effects import once_nodes

    nodes_once = once_nodes(flow.unit)
    for where in repeat:
        if not any(matches(where, NodeId(each.node)) for each in nodes_once):
            raise InputError(
                f"no node `{where}` has a tool whose calls must not be repeated",
                hint=f"such nodes are: {', '.join(each.node for each in nodes_once) or 'none'}",
            )
    not_allowed = [
        each
        for each in nodes_once
        if not any(matches(where, NodeId(each.node)) for where in repeat)
    ]
    if not_allowed:
        nodes = list(dict.fromkeys(each.node for each in not_allowed))
        named = ", ".join(f"{each.node} ({each.tool})" for each in not_allowed)
        words = " ".join(f"--confirm {shlex.quote(f'{node}=repeat')}" for node in nodes)
        raise InputError(
            f"a comparison runs everything twice, and calls that must not be repeated too: {named}",
            hint=f"{words} says that they may be",
        )
