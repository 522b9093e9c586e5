"""The parameters of an operation, and their serialisation.

Supports the common styles of OpenAPI 3; an operation with another style is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, cast
from urllib.parse import quote

from weft.agents.openapi.document import ApiDocument
from weft.agents.untrusted import identifiers, printable
from weft.core.errors import BuildError

Place = Literal["path", "query", "header", "cookie"]
_STYLES: Final[Mapping[str, tuple[str, ...]]] = {
    "path": ("simple",),
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    "header": ("simple",),
    "cookie": ("form",),
}
_JOINTS: Final = {"form": ",", "spaceDelimited": "%20", "pipeDelimited": "%7C"}
_IGNORED: Final = frozenset({"accept", "content-type", "authorization"})
_REFUSED: Final = frozenset(
    (
        *("host", "content-length", "transfer-encoding", "connection", "keep-alive", "upgrade"),
        *("te", "trailer", "expect", "cookie", "content-encoding", "accept-encoding"),
        *("user-agent", "forwarded"),
        *("x-http-method-override", "x-http-method", "x-method-override"),
    )
)
_TOKEN: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+\Z")


@dataclass(frozen=True, slots=True)
class ApiParameter:
    """A parameter: `argument` is its name in the tool's arguments, `name` that in the request."""

    argument: str
    name: str
    place: Place
    style: str
    explode: bool
    is_json: bool
    required: bool
    schema: Any
    description: str

    def text(self, value: Any) -> str:
        """The value for a path, a header or a cookie; encoded except for headers.

        Raises: `ValueError` when it cannot be serialised there.
        """
        encode = str if self.place == "header" else _quoted
        if self.is_json:
            return encode(json.dumps(value))
        if isinstance(value, Mapping):
            joint = "=" if self.explode else ","
            pairs = (f"{encode(key)}{joint}{encode(_word(one))}" for key, one in value.items())
            return ",".join(pairs)
        words = value if isinstance(value, list) else [value]
        return ",".join(encode(_word(one)) for one in words)

    def pairs(self, value: Any) -> list[tuple[str, str]]:
        """The value as encoded pairs of a query. Raises: `ValueError`."""
        name = _quoted(self.name)
        if self.is_json:
            return [(name, _quoted(json.dumps(value)))]
        if isinstance(value, Mapping):
            return self._object(name, value)
        if isinstance(value, list):
            words = [_quoted(_word(one)) for one in value]
            if self.explode and self.style == "form":
                return [(name, word) for word in words]
            return [(name, _JOINTS.get(self.style, ",").join(words))]
        return [(name, _quoted(_word(value)))]

    def _object(self, name: str, value: Mapping[str, Any]) -> list[tuple[str, str]]:
        pairs = [(_quoted(key), _quoted(_word(one))) for key, one in value.items()]
        if self.style == "deepObject":
            return [(f"{name}%5B{key}%5D", word) for key, word in pairs]
        if self.explode:
            return pairs
        joint = _JOINTS[self.style]
        return [(name, joint.join(f"{key}{joint}{word}" for key, word in pairs))]


def header_problem(name: str) -> str | None:
    """The reason why a header of this name must not be sent, or None."""
    if not _TOKEN.match(name):
        return "it is no name of a header"
    lower = name.lower()
    refused = lower in _REFUSED or lower.startswith(("proxy-", "sec-", "x-forwarded-"))
    return "it is not the caller's to set" if refused else None


def parameters_of(document: ApiDocument, *groups: Any) -> tuple[ApiParameter, ...]:
    """The parameters of an operation; later groups replace those of the same place and name.

    Raises: `BuildError` for a parameter that cannot be sent as declared.
    """
    found: dict[tuple[str, str], Mapping[str, Any]] = {}
    for group in groups:
        if not isinstance(group, Sequence) or isinstance(group, str):
            raise BuildError("`parameters` must be a list")
        for part in group:
            declared = document.resolved(part, "a parameter")
            name = declared.get("name")
            if not isinstance(name, str) or not name:
                raise BuildError("a parameter has no name")
            found[str(declared.get("in")), name] = declared
    wanted = {key: declared for key, declared in found.items() if not _is_skipped(*key, declared)}
    names = _arguments(list(wanted))
    return tuple(
        _parameter(document, names[key], key, declared) for key, declared in wanted.items()
    )


def _is_skipped(place: str, name: str, declared: Mapping[str, Any]) -> bool:
    if place != "header":
        return False
    if name.lower() in _IGNORED:  # by OpenAPI's rules: they are described elsewhere
        return True
    problem = header_problem(name)
    if problem is not None and declared.get("required") is True:
        raise BuildError(f"it needs the header {printable(name, 60)!r}, but {problem}")
    return problem is not None


def _arguments(keys: list[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """An argument name for each (place, name); names in two places get the place as a suffix."""
    bare = [name for _, name in keys]
    labels = {
        (place, name): name if bare.count(name) == 1 else f"{name} {place}" for place, name in keys
    }
    spelled = identifiers(["body", *labels.values()])
    return {key: spelled[label] for key, label in labels.items()}


def _parameter(
    document: ApiDocument, argument: str, key: tuple[str, str], declared: Mapping[str, Any]
) -> ApiParameter:
    place, name = key
    if place not in _STYLES:
        raise BuildError(f"the parameter {printable(name, 60)!r} is in {printable(place, 20)!r}")
    style = str(declared.get("style", _STYLES[place][0]))
    if style not in _STYLES[place]:
        raise BuildError(
            f"the parameter {printable(name, 60)!r} is of style {printable(style, 20)!r}"
        )
    schema, is_json = _schema(document, name, declared)
    return ApiParameter(
        argument,
        name,
        cast(Place, place),
        style,
        declared.get("explode", style == "form") is True,
        is_json,
        place == "path" or declared.get("required") is True,
        schema,
        str(declared.get("description") or ""),
    )


def _schema(document: ApiDocument, name: str, declared: Mapping[str, Any]) -> tuple[Any, bool]:
    """The schema of a parameter, and whether its value is sent as JSON text."""
    content = declared.get("content")
    if content is None:
        return declared.get("schema", {}), False
    media = content.get("application/json") if isinstance(content, Mapping) else None
    if media is None:
        raise BuildError(f"the parameter {printable(name, 60)!r} is neither plain nor JSON")
    return document.resolved(media, "a media type").get("schema", {}), True


def _word(value: Any) -> str:
    if isinstance(value, (Mapping, list)):
        raise ValueError("lists and objects inside others cannot be written there")  # noqa: TRY004
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)


def _quoted(text: str) -> str:
    return quote(text, safe="")
