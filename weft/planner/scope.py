"""The scope of references at one place of a plan, from the schemas of results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final

from weft.core.schema import at, declared, mismatch
from weft.core.suggestion import suggestion
from weft.core.values import JsonSchema
from weft.planner.plan import Ref
from weft.planner.text.writer import path_text, write_ref

LIST: Final[JsonSchema] = {"type": "array"}
_INDEX: Final[JsonSchema] = {"type": "integer", "minimum": 0}


def name_hint(name: str, names: Iterable[str]) -> str:
    """A short hint, without quotes, for a model that wrote `name` instead of one of `names`."""
    return suggestion(name, names, quote="", most=12)


class PlanDefect(Exception):
    """A defect in a plan; a caller that knows its position turns it into a `PlanError`."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class PlanScope:
    """The results that may be referred to: those of steps before `number`, by schema, and inside a
    map, after `enter`, an item and its index.
    """

    def __init__(self, known: Mapping[int, JsonSchema | None], number: int | None = None) -> None:
        self._known = known
        self._number = number
        self._in_map = False
        self._item: JsonSchema | None = None

    def enter(self, ref: Ref) -> None:
        """Enter the map over `ref`. Raises: `PlanDefect` when that is no list."""
        schema = self.outside(ref, "for each")
        if why := mismatch(schema, LIST):
            lists = self.parts_that_fit(ref, LIST)
            hint = f"a list is needed, such as {lists[0]}" if lists else "a list is needed"
            raise PlanDefect(f"for each {write_ref(ref)}: {why}", hint)
        self._in_map = True
        with suppress(LookupError):  # a list that is always empty has no item
            self._item = at(schema, [-1])

    def outside(self, ref: Ref, word: str) -> JsonSchema | None:
        """The schema of `ref` after the keyword `word`, where there is no item.

        Raises: `PlanDefect`.
        """
        if not isinstance(ref.source, int):
            hint = f"$item and $index are for arguments; `{word}` takes a step, such as $1.name"
            raise PlanDefect(f"{write_ref(ref)} cannot stand behind `{word}`", hint)
        return self.schema(ref)

    def schema(self, ref: Ref) -> JsonSchema | None:
        """The schema of the value of `ref`; None where it is unknown.

        Raises: `PlanDefect` when it does not exist.
        """
        schema = self._whole(ref)
        for depth, step in enumerate(ref.path):
            schema = _inside(schema, Ref(ref.source, ref.path[:depth]), step)
        return schema

    def parts_that_fit(self, ref: Ref, target: JsonSchema | None) -> list[str]:
        """The fields of the value of `ref` that may fit `target`, as references."""
        schema = self.schema(ref)
        found = []
        for name in declared(schema) or ():
            with suppress(LookupError):  # a field that is declared to be impossible
                if mismatch(at(schema, [name]), target) is None:
                    found.append(write_ref(Ref(ref.source, (*ref.path, name))))
        return found

    def _whole(self, ref: Ref) -> JsonSchema | None:
        if isinstance(ref.source, int):
            return self._result(ref.source)
        if not self._in_map:
            hint = "write `for each $1` behind the call, where $1 is a list"
            raise PlanDefect(f"{write_ref(ref)} is used outside of a `for each`", hint)
        return _INDEX if ref.source == "index" else self._item

    def _result(self, number: int) -> JsonSchema | None:
        if number in self._known:
            return self._known[number]
        if self._number is not None and number >= self._number:
            raise PlanDefect(
                f"${number} is not there yet", "a step can only use the results of earlier steps"
            )
        there = ", ".join(f"${known}" for known in sorted(self._known))
        hint = f"there are: {there}" if there else "no step before it has a result"
        raise PlanDefect(f"there is no step {number}", hint)


def _inside(schema: JsonSchema | None, ref: Ref, step: str | int) -> JsonSchema | None:
    """The schema of the part `step` of the value of `ref`, whose schema is `schema`.

    Raises: `PlanDefect` when there is none, or the field is not declared.
    """
    try:
        found = at(schema, [step])
    except LookupError as error:
        reason = str(error.args[0]).replace("the value", write_ref(ref), 1)
        raise PlanDefect(reason, _through_list(ref, step, schema)) from None
    names = declared(schema)
    if names and isinstance(step, str) and step not in names:
        raise PlanDefect(
            f"{write_ref(ref)} has no property {step!r}",
            name_hint(step, names),
        )
    return found


def _through_list(ref: Ref, step: str | int, schema: JsonSchema | None) -> str | None:
    """The hint for a field of a list instead of its items."""
    if isinstance(step, int) or mismatch(schema, LIST):
        return None
    name, field = write_ref(ref), path_text([step])
    return f"one item has {name}[0]{field}; for all write `for each {name}` and use $item{field}"
