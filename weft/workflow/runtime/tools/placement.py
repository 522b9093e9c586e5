"""Where the tools of a run are called: in this process, or on a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from weft.agents.tools import Tool, Toolbox
from weft.cluster.settings import LOCAL, Ray
from weft.core.errors import PlacementError
from weft.core.ports import ToolRunner
from weft.workflow.document.unit import Unit

if TYPE_CHECKING:
    from weft.cluster.tools import RayTools


class ToolPlacement:
    """The placement of one run: `ray` is its cluster, None: it has none.

    `is_forced`: everything runs here, whatever the declarations say.
    """

    def __init__(self, ray: Ray | None = None, *, is_forced: bool = False) -> None:
        self._ray = ray
        self._is_forced = is_forced
        self._tools: RayTools | None = None

    def over(self, tools: Toolbox) -> ToolRunner:
        """The runner that calls the tools of `tools` where they are placed."""
        if self._ray is None:
            return tools
        from weft.cluster.tools import RayTools

        self._tools = RayTools(tools, self._ray)
        return self._tools

    def place(self, tool: Tool[..., Any], on: str | None) -> None:
        """Place `tool`, whose declaration says `on`.

        Raises: `BuildError` for an unknown pool, `PlacementError` for what cannot be placed.
        """
        if self._tools is not None:
            self._tools.place(tool, on)
        elif on not in (None, LOCAL) and not self._is_forced:
            hint = "write `run: {on: ray}`, or run it with `--on ray` or `--on local`"
            raise PlacementError(
                f"{tool.spec.name} is to run on the pool {on}, without a cluster", hint=hint
            )

    async def check(self) -> None:
        """Raises: `PlacementError` where the cluster has no node for a tool's pool."""
        if self._tools is not None:
            await self._tools.check()

    async def aclose(self) -> None:
        """Cancel what runs on the cluster, and leave it."""
        if self._tools is not None:
            await self._tools.aclose()


def placement_of(unit: Unit, on: Ray | Literal["local"] | None) -> ToolPlacement:
    """The placement of a run of `unit`: `on`, or what its document says."""
    spec = unit.document.run
    if on == LOCAL:
        return ToolPlacement(is_forced=True)
    if on is None and spec.on is None:
        return ToolPlacement()
    declared = Ray(spec.address or "", content=spec.content, token_file=spec.token_file)
    pools = {name: pool.model_dump() for name, pool in spec.pools.items()}
    return ToolPlacement((on or declared).with_pools(pools))
