"""Hints of errors that differ between a file and a Python program: each in the words of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from weft.core.schema import at, declared
from weft.core.values import JsonSchema
from weft.workflow.document.spec.defects import choice_hint


def braces(*, in_python: bool) -> str:
    """How to write braces that are text."""
    how = "weft.literal(...)" if in_python else "{% raw %}...{% endraw %}"
    return f"for braces that are text write {how}"


def unknown_name(name: str, visible: Sequence[str], *, in_python: bool, in_text: bool) -> str:
    """What to do about a name that nothing has. `in_text`: it is in a text, between other words."""
    hint = choice_hint(name, visible) or (
        f'declare it: flow.input("{name}")' if in_python else "declare it under `inputs` or `nodes`"
    )
    return f"{hint}; {braces(in_python=in_python)}" if in_text else hint


def undeclared(what: str, *, in_python: bool) -> str:
    """What to do about a model or a tool where none is declared."""
    if in_python:
        return f"declare it: weft.Flow(name, {what}s={{...}})"
    return f"declare it under `{what}s`"


def option(key: str, value: str, *, in_python: bool) -> str:
    """An option of a node with its value."""
    return f"`{key}={value}`" if in_python else f"`{key}: {value}`"


def missing_argument(name: str, given: Iterable[str], *, in_python: bool) -> str:
    """What to do about a call that lacks the argument `name`."""
    hint = f"add `{name}=...`" if in_python else f"add `{name}` under `with`"
    return f"{hint}; given: {', '.join(given)}" if given else hint


def existing_part(name: str, schema: JsonSchema | None, path: Sequence[str | int]) -> str:
    """What there is instead of `path` in the value `name` of `schema`."""
    before = list(path)
    while before:
        wrong = before.pop()
        try:
            found = at(schema, before)
        except LookupError:
            continue
        if fields := declared(found):
            return choice_hint(str(wrong), fields) or f"see the type of `{name}`"
        place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in before)
        return f"write {{{{ {name}{place} }}}} for all of it"
    return f"see the type of `{name}`"
