"""Which tools take what another tool returns.

What a tool gives is read from its purpose: `Retrieve the location of a volcano` gives a location,
`Create a project` gives the id of a project.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from weft.agents.calls.catalogue import CallTool
from weft.agents.calls.kinds import words_of
from weft.agents.calls.pools import listed
from weft.agents.calls.purpose import LOOKUP, purpose_of

PLAIN: Final = frozenset({"string", "integer", "number"})
"""The types of parameters that take a result."""
_MAKES: Final = frozenset(listed("create,add,register,book,schedule,submit,generate,start,open"))
_VAGUE: Final = frozenset(
    listed(
        "status,level,data,rate,schedule,style,type,size,value,version,activity,area,result,results,"
        "number,concentration,frequency,count,time,range,method,pattern,quality"
    )
)


def gives(tool: CallTool) -> str | None:
    """The words of what the tool returns: `location`, `project id`; None where it is not one."""
    purpose = purpose_of(tool)
    if purpose.verb in LOOKUP:
        found = re.match(
            r"(?:the )?(?:current |latest |average )?([a-z]+(?: [a-z]+)?) (?:of|for) ", purpose.rest
        )
        if not found or found[1] in {"information", "details", "data", "list", *_VAGUE}:
            return None
        return found[1]
    if purpose.verb in _MAKES:
        found = re.match(r"(?:an?|the) (?:new )?([a-z]+)\b", purpose.rest)
        return f"{found[1]} id" if found else None
    return None


class ResultLinks:
    """The tools that give what others take, by the name of the parameter."""

    def __init__(self, tools: Sequence[CallTool]) -> None:
        self._takers: dict[str, list[tuple[CallTool, str]]] = {}
        for tool in tools:
            for name in tool.required:
                schema = tool.properties.get(name, {})
                if schema.get("type") in PLAIN and "enum" not in schema:
                    self._takers.setdefault(words_of(name), []).append((tool, name))
        self.givers = [one for one in tools if self.takers(one)]

    def takers(self, tool: CallTool) -> list[tuple[CallTool, str]]:
        """Other tools that require what this tool gives, each with the parameter."""
        given = gives(tool)
        if given is None:
            return []
        found = self._takers.get(given, [])
        if not found and given.split()[-1] not in _VAGUE:
            found = self._takers.get(given.split()[-1], [])
        return [(one, name) for one, name in found if one.name != tool.name]
