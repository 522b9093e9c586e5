"""The rehearsal of the plans of one agent's run, from round to round."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence

from weft.core.errors import BuildError
from weft.core.values import ToolSpec
from weft.planner.compile import Results
from weft.planner.plan import Plan, PlanStep
from weft.planner.prompt import PlanWorld
from weft.planner.rehearsal import RehearsalOptions, facts_after, rehearse
from weft.planner.rehearsal.options import check_vocabulary
from weft.planner.rehearsal.tool_facts import declared_facts
from weft.planner.text.writer import write


class PlanRehearsal:
    """Rehearses the plans of a run over `tools`; keeps the facts that hold between its rounds.

    Raises: `BuildError` where facts, goals and tools do not fit together.
    """

    def __init__(self, options: RehearsalOptions, tools: Sequence[ToolSpec]) -> None:
        declared = declared_facts(tools)
        check_vocabulary(options, declared)
        self._options = options
        self._tools = tools
        self._facts = options.world
        self.changing = frozenset(name for name, facts in declared.items() if facts.makes)

    @property
    def world(self) -> PlanWorld:
        """What the prompt of a plan says of the world."""
        facts = tuple(str(fact) for fact in sorted(self._facts))
        return PlanWorld(facts, tuple(map(str, self._options.wanted)))

    async def rehearsed(
        self,
        plan: Plan,
        *,
        first: int,
        results: Results,
        log: Callable[[str], None],
        show: Callable[[str], None],
    ) -> Plan:
        """`plan` with missing steps and safe orders. `results`: values of earlier steps by number.

        `first` is the number of its first step. `log` gets what was changed, `show` the new plan.

        Raises: `PlanError`.
        """
        # In a thread: a search may take seconds.
        found = await asyncio.to_thread(
            rehearse,
            plan,
            self._tools,
            self._facts,
            self._options.wanted,
            results=results,
            first=first,
            states=self._options.states,
        )
        if found.plan != plan:
            log(
                f"the rehearsal inserted {_steps(len(found.inserted))} and gave an order to"
                f" {_steps(len(found.ordered))}, {found.states:,} states searched"
            )
            show(f"\n{write(found.plan)}")
        return found.plan

    def take(self, steps: Iterable[PlanStep], results: Results) -> None:
        """Take note of `steps` that succeeded, in order. A call that failed changes nothing."""
        self._facts = facts_after(steps, self._tools, self._facts, results)


def check_rehearsal(agent: str) -> None:
    """Check that the agent `agent` writes plans. Raises: `BuildError`."""
    if agent not in ("compiler", "plan"):
        what = f"the agent {agent!r} writes no plan to rehearse"
        raise BuildError(what, hint="take compiler or plan, or leave facts and goals out")


def _steps(number: int) -> str:
    return f"{number} step{'' if number == 1 else 's'}"
