"""A work that cancels what it appended: votes that are decided, threads whose budget is spent."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.engine.virtual_run import play
from weft.core.errors import UnknownReference
from weft.core.ids import NodeId, inside
from weft.core.values import Usage
from weft.engine import Node, NodeContext

ROOT = NodeId("root")


async def _slow(context: NodeContext, _: Any) -> str:
    try:
        await asyncio.sleep(100)
    finally:
        context.spend(Usage(completion_tokens=3))
    return "slow"


async def _quick(_: NodeContext, __: Any) -> str:
    return "quick"


def test_a_work_cancels_a_node_it_appended_and_goes_on() -> None:
    async def work(context: NodeContext, _: Any) -> list[str]:
        slow, quick = inside(context.scope, "slow"), inside(context.scope, "quick")
        context.append([Node(slow, _slow), Node(quick, _quick)])
        await context.outcome(quick)
        context.cancel(slow, "decided")
        context.cancel(quick, "too late")
        return [(await context.outcome(each)).status for each in (slow, quick)]

    result = play(Node(ROOT, work), keep=[ROOT]).result
    assert result.value("root") == ["cancelled", "succeeded"]
    assert result.wall_s == 0
    assert result.usage.completion_tokens == 3, "what a cancelled node spends last is counted"
    assert result.status == "succeeded", "what a work cancels on purpose is not missed"


def test_cancelling_reaches_everything_inside() -> None:
    async def thread(context: NodeContext, _: Any) -> str:
        child = inside(context.scope, "child")
        context.append([Node(child, _slow)])
        return str((await context.outcome(child)).status)

    async def work(context: NodeContext, _: Any) -> str:
        place = inside(context.scope, "thread")
        context.append([Node(place, thread)])
        await asyncio.sleep(1)
        context.cancel(place, "enough")
        return str((await context.outcome(place)).status)

    result = play(Node(ROOT, work), keep=[ROOT]).result
    assert result.value("root") == "cancelled"
    assert result.outcomes[NodeId("root/thread/child")].status == "cancelled"
    assert result.wall_s == 1


def test_only_what_was_appended_here_can_be_cancelled() -> None:
    async def work(context: NodeContext, _: Any) -> None:
        with pytest.raises(UnknownReference, match="not appended here"):
            context.cancel(NodeId("other"), "mine?")

    result = play(Node(ROOT, work), Node(NodeId("other"), _quick)).result
    assert result.status == "succeeded"
