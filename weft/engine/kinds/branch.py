"""One of several bodies, chosen when the node starts; the others never exist."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from weft.core.errors import UnknownReference
from weft.core.ids import inside, is_name
from weft.engine.kinds.body import Body, grow_one
from weft.engine.node import Grow, Inputs, NodeContext, Skip, Work


def branch(
    choose: Callable[[Inputs], str],
    cases: Mapping[str, Body],
    *,
    otherwise: Body | None = None,
    skip_unmatched: bool = False,
) -> Work:
    """A work that runs the body of the case that `choose(inputs)` names; its value is the value.

    Without a matching case `otherwise` runs; without that the node is left out on purpose when
    `skip_unmatched`, else it fails with `UnknownReference`, which lists the cases.
    """
    places = {case: case if is_name(case) else f"case{i}" for i, case in enumerate(cases)}

    async def work(context: NodeContext, inputs: Inputs) -> Grow | Skip:
        chosen = choose(inputs)
        body = cases.get(chosen, otherwise)
        if body is not None:
            scope = inside(context.scope, places.get(chosen, "otherwise"))
            return await grow_one(context, scope, body, {})
        if skip_unmatched:
            return Skip(f"no case for {chosen!r}")
        raise UnknownReference(
            f"no case for {chosen!r}",
            node=context.node,
            hint=f"the cases are {', '.join(map(repr, cases))}; add one, or a default",
        )

    return work
