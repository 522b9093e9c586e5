"""Several runners of tools as one. Knows names only: every call goes to the runner that has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from weft.agents.slots import resource_of
from weft.agents.tools.suggestion import suggestion
from weft.core.errors import DuplicateName, ToolNotFound, WeftError
from weft.core.ports import BatchRunner, ToolRunner
from weft.core.values import ToolSpec


class JoinedTools:
    """Implements `ToolRunner` and `BatchRunner` over `runners`, which whoever gives them closes.

    Raises: `DuplicateName` when two of them have a tool of one name, here and in `specs`.
    """

    def __init__(self, *runners: ToolRunner) -> None:
        self._runners = runners
        self._owners: dict[str, ToolRunner] = {}
        self.specs()

    def specs(self) -> tuple[ToolSpec, ...]:
        found: dict[str, ToolSpec] = {}
        owners: dict[str, ToolRunner] = {}
        for runner in self._runners:
            for spec in runner.specs():
                if spec.name in found:
                    hint = "give one another name, or its server a prefix"
                    raise DuplicateName(f"there are two tools {spec.name!r}", hint=hint)
                found[spec.name] = spec
                owners[spec.name] = runner
        self._owners = owners
        return tuple(found.values())

    def resource(self, name: str) -> str | None:
        """The class of slots that a call of the tool takes, or None."""
        owner = self._owners.get(name)
        return None if owner is None else resource_of(owner, name)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        return await self._owner(name).call(name, arguments)

    async def call_batch(
        self, name: str, calls: Sequence[Mapping[str, Any]]
    ) -> Sequence[Any | WeftError]:
        owner = self._owner(name)
        if isinstance(owner, BatchRunner):
            return await owner.call_batch(name, calls)
        raise ToolNotFound(f"{name} takes one call at a time", hint="its spec says `batch: 0`")

    def _owner(self, name: str) -> ToolRunner:
        owner = self._owners.get(name)
        if owner is None:
            self.specs()  # a server that came back may offer what it did not before
            owner = self._owners.get(name)
        if owner is None:
            raise ToolNotFound(f"there is no tool {name!r}", hint=suggestion(name, self._owners))
        return owner
