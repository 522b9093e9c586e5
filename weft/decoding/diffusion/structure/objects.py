"""Objects as parts of a skeleton: required properties are text, each optional run is a choice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from weft.decoding.diffusion.structure.compiling import Compiling
from weft.decoding.diffusion.structure.keywords import Schema, spelled
from weft.decoding.diffusion.structure.parts import Parts, Text, joined
from weft.decoding.diffusion.structure.refused import NotASkeleton
from weft.decoding.diffusion.structure.repeated import Repeated

_Property = tuple[str, object]
_KEY: Final = {"type": "string"}


class Objects:
    """One schema of an object. A property is its name and its schema."""

    def __init__(self, compiling: Compiling, schema: Schema) -> None:
        self._compiling = compiling
        declared: dict[str, Any] = dict(schema.get("properties", {}))
        required = list(dict.fromkeys(schema.get("required", ())))
        self._others = schema.get("additionalProperties", True)
        for name in required:
            declared.setdefault(name, self._others)
        least, most = schema.get("minProperties", 0), schema.get("maxProperties")
        if not declared and self._others is not False:
            self._map = True
        else:
            self._map = False
            _check_counts(least, most, len(required), len(declared))
            if most is not None and most < len(declared):
                declared = {name: declared[name] for name in required}
                compiling.narrow("optional properties, where the number of properties is limited")
            if self._others is not False:
                compiling.narrow("properties that are not declared")
        self._declared = [item for item in declared.items() if item[1] is not False]
        if len(self._declared) < len(declared) and not set(required) <= dict(self._declared).keys():
            raise NotASkeleton("a required property allows nothing")
        self._required = frozenset(required)
        self._least, self._most = least, most

    def parts(self) -> Parts:
        """Raises: `NotASkeleton`."""
        if self._map:
            return self._entries()
        first = next((n for n, one in enumerate(self._declared) if self._is_required(one)), None)
        if first is None:
            return Text("{"), *self._choices(self._declared, ("", ", ")), Text("}")
        before = self._choices(self._declared[:first], ("", ""), after=", ")
        parts: Parts = (Text("{"), *before, *self._member(self._declared[first]))
        run: list[_Property] = []
        for one in self._declared[first + 1 :]:
            if self._is_required(one):
                parts = (*parts, *self._choices(run, (", ", ", ")), Text(", "), *self._member(one))
                run = []
            else:
                run.append(one)
        return (*parts, *self._choices(run, (", ", ", ")), Text("}"))

    def _is_required(self, one: _Property) -> bool:
        return one[0] in self._required

    def _member(self, one: _Property) -> Parts:
        return Text(f"{spelled(one[0])}: "), *self._compiling.value(one[1])

    def _choices(self, run: Sequence[_Property], before: tuple[str, str], after: str = "") -> Parts:
        """Any of `run`, in order: `before` stands before the first and before later ones, `after`
        behind each.
        """
        if not run:
            return ()
        left = tuple(run)
        key = ("optional", self._compiling.key([list(one) for one in left]), before, after)
        return (self._compiling.choice(key, lambda: self._ways(left, before, after), exits=True),)

    def _ways(
        self, run: tuple[_Property, ...], before: tuple[str, str], after: str
    ) -> Sequence[Parts]:
        """None of them, or one and then any of those behind it."""
        later = (before[1], before[1])
        ways: list[Parts] = [()]
        for number, one in enumerate(run):
            rest = self._choices(run[number + 1 :], later, after)
            text = (Text(after),) if after else ()
            way = (Text(before[0]), *self._member(one), *text, *rest)
            ways.append(joined(way))
        return ways

    def _entries(self) -> Parts:
        """A map: keys are strings, and their values all fit one schema."""
        if self._least > 1:
            raise NotASkeleton("'minProperties' of an object whose properties have no names")
        entries = Repeated(
            self._compiling,
            ("entries", self._compiling.key([self._others, self._most])),
            lambda _: self._entry(),
            self._most,
        )
        return Text("{"), *entries.parts(self._least), Text("}")

    def _entry(self) -> Parts:
        return *self._compiling.value(_KEY), Text(": "), *self._compiling.value(self._others)


def _check_counts(least: int, most: int | None, required: int, declared: int) -> None:
    """Raises: `NotASkeleton` where counting would need to know which optional ones are there."""
    if least > required:
        raise NotASkeleton("'minProperties' above the number of required properties")
    if most is not None and most < declared and most != required:
        raise NotASkeleton("'maxProperties' between the required and the declared ones")
