"""Reads an OpenAPI document as bounded plain data, with its references and JSON Schemas.

Schemas of OpenAPI 3.0 are rewritten as draft 2020-12; `weft.agents.untrusted` vets them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Final, Literal

from pydantic_core import from_json
from ruamel.yaml import YAML

from weft.agents.untrusted import identifier, printable
from weft.core.errors import BuildError
from weft.validation.schema_cost import map_subschemas

MAX_JSON_BYTES: Final = 16 * 2**20
MAX_YAML_BYTES: Final = 4 * 2**20
_MAX_VALUES: Final = 500_000
_MAX_DEPTH: Final = 100
_MAX_HOPS: Final = 32


@dataclass(frozen=True, slots=True)
class ApiDocument:
    """A document of OpenAPI 3.0 or 3.1. `minor` is 0 or 1, `digest` that of its content."""

    root: Mapping[str, Any]
    minor: int
    digest: str

    def at(self, reference: str) -> Any:
        """The target of a local reference (`#/components/...`). Raises: `BuildError`."""
        if not reference.startswith("#/"):
            raise BuildError(
                f"the reference {printable(reference, 100)!r} leads out of the document",
                hint="bundle the document into one file first",
            )
        found: Any = self.root
        for step in reference[2:].split("/"):
            name = step.replace("~1", "/").replace("~0", "~")
            if isinstance(found, list) and name.isdecimal() and int(name) < len(found):
                found = found[int(name)]
            elif isinstance(found, Mapping) and name in found:
                found = found[name]
            else:
                raise BuildError(f"the reference {printable(reference, 100)!r} leads nowhere")
        return found

    def resolved(self, part: Any, what: str) -> Mapping[str, Any]:
        """`part` with its reference resolved, an object. Raises: `BuildError`."""
        for _ in range(_MAX_HOPS):
            if not isinstance(part, Mapping):
                raise BuildError(f"{what} must be an object, not {type(part).__name__}")
            reference = part.get("$ref")
            if not isinstance(reference, str):
                return part
            part = self.at(reference)
        raise BuildError(f"{what} refers to itself")


def read_document(source: Mapping[str, Any] | bytes | Path) -> ApiDocument:
    """The document from a file, its bytes, or plain data. Raises: `BuildError`."""
    if isinstance(source, Path):
        source = _bytes_of(source)
    data = _parsed(source) if isinstance(source, bytes) else source
    root = _JsonCopier().of(data)
    if not isinstance(root, dict):
        raise BuildError("an OpenAPI document is an object", hint="is this the right file?")
    digest = hashlib.sha256(json.dumps(root, sort_keys=True).encode()).hexdigest()
    return ApiDocument(root, _minor(root), digest[:16])


def _bytes_of(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            return stream.read(MAX_JSON_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise BuildError(f"cannot read {path}: {reason}") from error


def _parsed(data: bytes) -> Any:
    is_json = data[:4096].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")
    most = MAX_JSON_BYTES if is_json else MAX_YAML_BYTES
    if len(data) > most:
        raise BuildError(f"the document is larger than {most:,} bytes")
    try:
        if is_json:
            return from_json(data.removeprefix(b"\xef\xbb\xbf"), allow_inf_nan=False)
        return YAML(typ="safe", pure=True).load(data.decode("utf-8-sig"))
    except Exception as error:  # the YAML parser may raise anything
        raise BuildError(f"the document cannot be read: {printable(str(error), 300)}") from error


def _minor(root: Mapping[str, Any]) -> int:
    version = str(root.get("openapi", ""))
    for minor in (0, 1):
        if version == f"3.{minor}" or version.startswith(f"3.{minor}."):
            return minor
    problem = f"is of version {printable(version, 20)!r}" if version else "has no `openapi: 3.x`"
    raise BuildError(f"the document {problem}", hint="weft reads OpenAPI 3.0 and 3.1; convert it")


class _JsonCopier:
    """Copies data as JSON, with bounds: shared parts of YAML count each time they occur."""

    def __init__(self) -> None:
        self._values = 0

    def of(self, value: Any, depth: int = 1) -> Any:
        self._values += 1
        if self._values > _MAX_VALUES:
            raise BuildError(f"the document holds more than {_MAX_VALUES:,} values")
        if depth > _MAX_DEPTH:
            raise BuildError(f"the document is nested deeper than {_MAX_DEPTH} levels")
        if isinstance(value, Mapping):
            return {_key(key): self.of(inner, depth + 1) for key, inner in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.of(inner, depth + 1) for inner in value]
        if isinstance(value, date):  # YAML knows dates, JSON does not
            return value.isoformat()
        if value is None or isinstance(value, (str, bool, int, float)):
            return value
        raise BuildError(f"the document holds a {type(value).__name__}, which JSON does not know")


def _key(key: Any) -> str:
    """The key as text; YAML reads an unquoted 200 among the responses as a number."""
    if isinstance(key, bool) or not isinstance(key, (str, int)):
        raise BuildError(f"the document has the key {printable(repr(key), 40)}", hint="quote it")
    return str(key)


Direction = Literal["request", "response"]
_LATER: Final = frozenset(("$defs", "definitions"))


class SchemaWriter:
    """Rewrites schemas for one direction, and collects the schemas they refer to.

    Requests omit `readOnly` properties, responses `writeOnly` ones.
    """

    def __init__(self, document: ApiDocument, direction: Direction) -> None:
        self._document = document
        self._hidden = "readOnly" if direction == "request" else "writeOnly"
        self._names: dict[str, str] = {}
        self._pending: list[str] = []

    def written(self, schema: Any) -> Any:
        """`schema` with its references as `#/$defs/...`. Raises: `BuildError`."""
        if not isinstance(schema, Mapping):
            return schema
        reference = schema.get("$ref")
        if isinstance(reference, str):
            target = {"$ref": f"#/$defs/{self._name(reference)}"}
            if self._document.minor == 0 or len(schema) == 1:  # 3.0 ignores siblings of $ref
                return target
            siblings = {key: value for key, value in schema.items() if key != "$ref"}
            return {"allOf": [target, self.written(siblings)]}
        made = {
            key: map_subschemas(key, value, self.written)
            for key, value in schema.items()
            if key not in _LATER
        }
        self._drop_hidden(schema, made)
        return _modern(made)

    def definitions(self) -> dict[str, Any]:
        """The `$defs` for the schemas written so far. Raises: `BuildError`."""
        made: dict[str, Any] = {}
        while self._pending:
            reference = self._pending.pop()
            made[self._names[reference]] = self.written(self._document.at(reference))
        return made

    def _name(self, reference: str) -> str:
        if reference not in self._names:
            name = identifier(reference.rpartition("/")[2])
            taken = set(self._names.values())
            numbered = (f"{name}_{number}" for number in range(2, len(taken) + 3))
            self._names[reference] = (
                name if name not in taken else next(n for n in numbered if n not in taken)
            )
            self._pending.append(reference)
        return self._names[reference]

    def _drop_hidden(self, schema: Mapping[str, Any], made: dict[str, Any]) -> None:
        properties = schema.get("properties")
        if not isinstance(properties, Mapping):
            return
        hidden = {name for name, part in properties.items() if self._is_hidden(part)}
        made["properties"] = {
            name: part for name, part in made["properties"].items() if name not in hidden
        }
        if isinstance(made.get("required"), list):
            made["required"] = [name for name in made["required"] if name not in hidden]

    def _is_hidden(self, part: Any) -> bool:
        if not isinstance(part, Mapping):
            return False
        if part.get(self._hidden) is True:
            return True
        if "$ref" not in part:
            return False
        return self._document.resolved(part, "a property").get(self._hidden) is True


def _modern(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema of OpenAPI 3.0, in an older draft, converted to draft 2020-12.

    Many documents of version 3.1 still use the older form.
    """
    required = schema.get("required")
    if isinstance(required, list) and all(isinstance(name, str) for name in required):
        schema["required"] = [*dict.fromkeys(required)]
    for bound, strict in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(schema.get(strict), bool) and schema.pop(strict) and bound in schema:
            schema[strict] = schema.pop(bound)
    if schema.pop("nullable", False) is not True:
        return schema
    if isinstance(schema.get("type"), str):
        schema["type"] = [schema["type"], "null"]
        if isinstance(schema.get("enum"), list) and None not in schema["enum"]:
            schema["enum"] = [*schema["enum"], None]
        return schema
    return {"anyOf": [schema, {"type": "null"}]}
