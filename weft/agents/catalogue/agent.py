"""An agent that first chooses its tools from a catalogue, and then works with these alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from weft.agents.agent import Agent, AgentOptions
from weft.agents.catalogue.choice import ToolChooser
from weft.agents.catalogue.lexical import LexicalChooser
from weft.agents.catalogue.model import ModelChooser
from weft.agents.catalogue.reader import read_catalogue
from weft.agents.catalogue.search import CatalogueIndex
from weft.agents.catalogue.tree import Catalogue, prefix_paths
from weft.agents.names import check_callable
from weft.agents.tools.approval import ApprovalRule
from weft.agents.tools.toolbox import resource_of, settings_of
from weft.core.errors import AgentError, ToolNotFound
from weft.core.ids import inside
from weft.core.ports import ModelClient, ToolRunner
from weft.core.suggestion import suggestion
from weft.core.values import ToolSpec
from weft.durability.calls.digest import identity
from weft.engine import Inputs, Node, NodeContext, NodeFn, Retry

MakeAgent = Callable[[ToolRunner], Agent]
_NODE: Final = "choose"


class CatalogueAgent:
    """Implements `Agent`: `make` makes the agent that answers with the chosen tools.

    `runs`: it calls tools, so that only tools with a function are chosen.
    """

    def __init__(
        self,
        name: str,
        tools: ToolRunner,
        model: ModelClient,
        options: AgentOptions,
        make: MakeAgent,
        *,
        runs: bool = True,
    ) -> None:
        assert options.catalogue is not None
        self.name = name
        self._given = options.catalogue
        self._options = options
        self._model = model
        self._make = make
        self._tools = tools
        self._runs = runs

    def work(self, question: str) -> NodeFn:
        """See `Agent.work`. The choice is the node `choose` inside the agent's.

        The node raises `BuildError` where no declared tool has a function, and for an unusable
        file.
        """

        async def work(context: NodeContext, inputs: Inputs) -> Any:
            # In a thread: thousands of schemas take seconds to check.
            catalogue = await asyncio.to_thread(self._read, context.log)
            names = await self._chosen(context, catalogue, question)
            agent = self._make(ChosenTools(self._tools, catalogue.specs(names)))
            return await agent.work(question)(context, inputs)

        return work

    def _read(self, log: Callable[[str], None]) -> Catalogue:
        """The catalogue; what it leaves out is logged."""
        own = self._tools.specs()
        if self._given.file is None:
            return Catalogue.grouped(own)
        found = read_catalogue(Path(self._given.file))
        if found.refused:
            count, first = len(found.refused), found.refused[0]
            log(f"{count:,} declarations of the catalogue cannot be used, as {first}")
        if not self._runs:
            return _joined(found, own)
        named = {spec.name for spec in own}
        kept = [(tool.spec, tool.path) for tool in found.tools.values() if tool.name in named]
        if not kept:
            check_callable(self.name, self._given.file)
        if len(kept) < len(found):
            log(f"{len(found) - len(kept):,} tools of the catalogue have no function")
        return _joined(Catalogue(kept), own)

    async def _chosen(
        self, context: NodeContext, catalogue: Catalogue, question: str
    ) -> tuple[str, ...]:
        given = self._given

        async def choose(own: NodeContext, _: Inputs) -> dict[str, Any]:
            index = await asyncio.to_thread(CatalogueIndex, catalogue)
            choice = await self._chooser(index).choose(own, question, given.tokens)
            shown = f"{len(choice.tools):,} of {len(catalogue):,} tools are offered"
            share = choice.tokens / catalogue.tokens
            own.log(f"{shown}, {choice.tokens:,} tokens ({share:.1%}): {', '.join(choice.tools)}")
            return asdict(choice)

        node = inside(context.scope, _NODE)
        content = identity("catalogue", given.chooser, given.tokens, catalogue.digest, question)
        context.append([Node(node, choose, kind="agent", identity=content)])
        outcome = await context.outcome(node)
        if not outcome.ok or not outcome.value["tools"]:
            why = outcome.failure or "no words of the question occur in the catalogue"
            hint = "word it as the catalogue does, allow more tokens, or let a model choose"
            raise AgentError(f"no tools were chosen: {why}", node=node, hint=hint)
        return tuple(outcome.value["tools"])

    def _chooser(self, index: CatalogueIndex) -> ToolChooser:
        lexical = LexicalChooser(index)
        if self._given.chooser == "lexical":
            return lexical
        return ModelChooser(index, self._model, self._options, lexical, self._given.calls)


def _joined(catalogue: Catalogue, own: tuple[ToolSpec, ...]) -> Catalogue:
    """`catalogue` with the tools of the program; of these the program's own declarations hold."""
    specs = {spec.name: spec for spec in own}
    fields = dict(zip(specs, prefix_paths(list(specs)), strict=True))
    listed = [(specs.pop(t.name, t.spec), t.path) for t in catalogue.tools.values()]
    return Catalogue([*listed, *((specs[name], fields[name]) for name in specs)], catalogue.refused)


class ChosenTools:
    """Implements `ToolRunner` over `inner` with the tools `specs` alone.

    A tool that `inner` has not is declared only: calling it raises `ToolNotFound`.
    """

    def __init__(self, inner: ToolRunner, specs: tuple[ToolSpec, ...]) -> None:
        self._inner = inner
        self._specs = {spec.name: spec for spec in specs}
        self._runs = {spec.name for spec in inner.specs()}

    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(self._specs.values())

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        if name not in self._specs:
            hint = suggestion(name, self._specs)
            raise ToolNotFound(f"no tool {name!r:.100} is offered", hint=hint)
        if name not in self._runs:
            hint = "give a function of this name as a tool"
            raise ToolNotFound(f"{name} is declared only, and cannot be called", hint=hint)
        return await self._inner.call(name, arguments)

    def resource(self, name: str) -> str | None:
        """The resource whose slot a call of the tool takes, or None."""
        return resource_of(self._inner, name) if name in self._runs else None

    def retry(self, name: str) -> Retry | None:
        """The retry that the tool declares, or None."""
        return settings_of(self._inner, name).retry if name in self._runs else None

    def approval(self, name: str) -> ApprovalRule | None:
        """Whether calls of the tool need a person's approval; None: it does not say."""
        rule = getattr(self._inner, "approval", None) if name in self._runs else None
        found: ApprovalRule | None = None if rule is None else rule(name)
        return found
