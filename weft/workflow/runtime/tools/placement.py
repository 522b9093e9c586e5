"""Where the tools of a run are called: in this process, or on a cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from weft.agents.tools import Tool, Toolbox
from weft.cluster.settings import LOCAL, Placement, Ray
from weft.core.errors import BuildError, PlacementError, StoreError
from weft.core.ports import ToolRunner
from weft.durability.content_address import open_content
from weft.workflow.document.unit import Unit

if TYPE_CHECKING:
    from weft.cluster.tools import RayTools
    from weft.reasoning.code.bench import ProgramRunner
    from weft.reasoning.code.sandbox.sandbox import CodeSandbox

SANDBOX: Final = "sandbox"
"""The pool for programs of models, where no other one is named."""


class ToolPlacement:
    """The placement of one run: `ray` is its cluster, None: it has none.

    `is_forced`: everything runs here, whatever the declarations say.
    """

    def __init__(self, ray: Ray | None = None, *, is_forced: bool = False) -> None:
        self._ray = ray
        self._is_forced = is_forced
        self._runners: dict[str | None, RayTools] = {}
        self._programs: dict[str, RayTools] = {}

    @property
    def on_cluster(self) -> bool:
        """Whether the run has a cluster."""
        return self._ray is not None

    def over(self, tools: Toolbox, around: str | None = None) -> ToolRunner:
        """The runner that calls the tools of `tools` where they are placed.

        `around`: one of its own for calls in nodes for which those around them name that pool.
        """
        if self._ray is None:
            return tools
        from weft.cluster.tools import RayTools

        runner = self._runners[around] = RayTools(tools, self._ray)
        return runner

    def check_pool(self, on: str, what: str) -> None:
        """Check that there is the pool `on`, on which `what` is to run.

        Raises: `BuildError` for an unknown pool, `PlacementError` for one without a cluster.
        """
        if self._ray is not None:
            self._ray.pool_of(on, None)
        elif on != LOCAL and not self._is_forced:
            hint = "write `run: {on: ray}`, or run it with `--on ray` or `--on local`"
            raise PlacementError(f"{what} is to run on the pool {on}, without a cluster", hint=hint)

    def place(self, tool: Tool[..., Any], on: str | None, around: str | None = None) -> None:
        """Place `tool` on the pool `on`, for the runner of `around`.

        Raises: `BuildError` for an unknown pool, `PlacementError` for what cannot be placed.
        """
        if self._ray is not None:
            self._runners[around].place(tool, on)
        elif on is not None:
            self.check_pool(on, tool.spec.name)

    def programs(self, around: str | None) -> Callable[[CodeSandbox], ProgramRunner] | None:
        """What runs programs of models in nodes for which those around them name a pool.

        By default that is the pool called `sandbox`. None: they run in this process's sandbox.
        """
        pools = () if self._ray is None else self._ray.pools
        on = around or (SANDBOX if SANDBOX in pools else LOCAL)
        if self._ray is None or on == LOCAL:
            return None
        from weft.agents.programs import PlacedSandbox, run_program
        from weft.cluster.tools import RayTools

        runner = self._programs.get(on)
        if runner is None:
            runner = self._programs[on] = RayTools(Toolbox(run_program), self._ray)
            runner.place(run_program, on)
        return partial(PlacedSandbox, call=runner.bound(run_program.spec.name))

    async def check(self) -> None:
        """Raises: `PlacementError` where the cluster has no node for a tool's pool."""
        for runner in self._runners.values():
            await runner.check()

    async def aclose(self) -> None:
        """Cancel what runs on the cluster, and leave it."""
        for runner in (*self._runners.values(), *self._programs.values()):
            await runner.aclose()


def checked_placement(unit: Unit, on: Placement | None) -> ToolPlacement:
    """As `placement_of`, before a run: where nothing says that there is a cluster, one may come."""
    unknown = on is None and unit.document.run.on is None
    return placement_of(unit, LOCAL if unknown else on)


def placement_of(unit: Unit, on: Placement | None) -> ToolPlacement:
    """The placement of a run of `unit`: `on`, and for what that leaves open its document.

    Raises: `BuildError`, with the position, for what the document says; `StoreError`.
    """
    spec = unit.document.run
    if on == LOCAL:
        return ToolPlacement(is_forced=True)
    if on is None and spec.on is None:
        return ToolPlacement()
    given = on or Ray()
    try:
        ray = replace(
            given,
            address=given.address or spec.address or "",
            content=spec.content if given.content is None else given.content,
            token_file=spec.token_file if given.token_file is None else given.token_file,
        )
    except BuildError as error:
        unit.fail(error, ("run", "address"))
    try:
        open_content(ray.content_address)
    except StoreError as error:
        if given.content is not None:
            raise
        unit.fail(BuildError(error.message, hint=error.hint), ("run", "content"))
    return ToolPlacement(
        ray.with_pools({name: each.model_dump() for name, each in spec.pools.items()})
    )
