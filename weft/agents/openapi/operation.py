"""One operation of a document: found by its name, parsed, and described as a tool."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from weft.agents.openapi.document import ApiDocument, SchemaWriter
from weft.agents.openapi.options import OpenApiOptions
from weft.agents.openapi.parameter import ApiParameter, parameters_of
from weft.agents.openapi.responses import ResponseSchemas, is_json, responses_of
from weft.agents.untrusted import effect_of, printable, vet_schema
from weft.agents.untrusted.schema import warn_of_contradictions
from weft.core.errors import BuildError
from weft.core.suggestion import suggestion
from weft.core.values import Effect, ToolSpec
from weft.validation import SchemaRefused

READING: Final = frozenset({"GET", "HEAD"})
KEY_HEADER: Final = "Idempotency-Key"
_SAFE: Final = READING | {"OPTIONS"}
_IDEMPOTENT: Final = frozenset({"PUT", "DELETE"})
METHODS: Final = ("get", "put", "post", "delete", "options", "head", "patch")
_BY_PATH: Final = re.compile(rf"({'|'.join(METHODS)})\s+(/\S*)\Z", re.IGNORECASE)
_PATH: Final = re.compile(r"/[^\s?#\\]*\Z")
_NAMES: Final = re.compile(r"\{([^{}]*)\}")
_LONGEST: Final = 1_000
_OPTIONS: Final = OpenApiOptions()


@dataclass(frozen=True, slots=True)
class OperationLocation:
    """An operation in the document: `item` is its path item."""

    method: str
    path: str
    item: Mapping[str, Any]
    declared: Mapping[str, Any]

    @property
    def id(self) -> str:
        """The `operationId`, or method and path."""
        return str(self.declared.get("operationId") or f"{self.method} {self.path}")


@dataclass(frozen=True, slots=True)
class Operation:
    """A callable operation.

    `media` is the media type of its body, empty without one. `keyed`: it declares a header
    `Idempotency-Key`, which is not an argument: each call sets it.
    """

    spec: ToolSpec
    method: str
    path: str
    parameters: tuple[ApiParameter, ...]
    media: str
    responses: ResponseSchemas
    security: Any
    keyed: bool = False


def operations(document: ApiDocument) -> Iterator[OperationLocation]:
    """All operations of the document. Raises: `BuildError`."""
    paths = document.root.get("paths", {})
    if not isinstance(paths, Mapping):
        raise BuildError("`paths` must be an object")
    for path, part in paths.items():
        item = document.resolved(part, f"the path {printable(path, 80)}")
        for method in METHODS:
            if isinstance(item.get(method), Mapping):
                yield OperationLocation(method, path, item, item[method])


def find(document: ApiDocument, wanted: str) -> OperationLocation:
    """The operation named by an `operationId`, or as `GET /pets/{id}`.

    Raises: `BuildError` when there is none, or the id is not unique.
    """
    known = list(operations(document))
    by_path = _BY_PATH.match(wanted.strip())
    if by_path is not None:
        method, path = by_path[1].lower(), by_path[2]
        found = [each for each in known if (each.method, each.path) == (method, path)]
    else:
        found = [each for each in known if each.declared.get("operationId") == wanted]
    if len(found) == 1:
        return found[0]
    if found:
        raise BuildError(
            f"several operations are called {printable(wanted, 80)!r}",
            hint=f"list it as {found[0].method.upper()} {found[0].path}",
        )
    names = [
        printable(f"{each.method.upper()} {each.path}" if by_path else each.id, 80)
        for each in known
    ]
    raise BuildError(
        f"the document has no operation {printable(wanted, 80)!r}", hint=suggestion(wanted, names)
    )


def read(
    document: ApiDocument,
    found: OperationLocation,
    name: str,
    version: str,
    options: OpenApiOptions = _OPTIONS,
    label: str = "",
) -> Operation:
    """`found` as the tool `name`; `label` is its name in the effects of `options`.

    Raises: `BuildError` with the operation's name.
    """
    try:
        operation = _read(document, found, name, version)
    except (BuildError, SchemaRefused) as error:
        where = f"{found.method.upper()} {printable(found.path, 80)}"
        hint = error.hint if isinstance(error, BuildError) else None
        message = error.message if isinstance(error, BuildError) else str(error)
        raise BuildError(f"the operation {where}: {message}", hint=hint) from error
    effect = effect_of(options.effects, label or name, _effect(operation))
    pure = options.pure and operation.method in READING and effect == "pure"
    return replace(operation, spec=replace(operation.spec, pure=pure, effect=effect))


def _effect(operation: Operation) -> Effect:
    """The default effect, by HTTP method and idempotency key."""
    if operation.method in _SAFE:
        return "pure"
    return "idempotent" if operation.keyed or operation.method in _IDEMPOTENT else "unknown"


def _read(document: ApiDocument, found: OperationLocation, name: str, version: str) -> Operation:
    declared = found.declared
    parameters = parameters_of(
        document, found.item.get("parameters", []), declared.get("parameters", [])
    )
    keyed = any(_is_key(each) for each in parameters)
    parameters = tuple(each for each in parameters if not _is_key(each))
    _check_path(found.path, parameters)
    media, body, needed = _body(document, declared.get("requestBody"))
    writer = SchemaWriter(document, "request")
    properties = {each.argument: _parameter_schema(writer, each) for each in parameters}
    required = [each.argument for each in parameters if each.required]
    if media:
        properties["body"] = writer.written(body)
        required += ["body"] if needed else []
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    schema |= {"required": required} if required else {}
    definitions = writer.definitions()
    schema |= {"$defs": definitions} if definitions else {}
    responses = responses_of(document, declared.get("responses", {}))
    arguments = vet_schema(schema)
    warn_of_contradictions(name, arguments)
    spec = ToolSpec(
        name, _description(declared, found), arguments, responses.result(), version=version
    )
    security = declared.get("security", document.root.get("security"))
    method = found.method.upper()
    return Operation(spec, method, found.path, parameters, media, responses, security, keyed)


def _is_key(parameter: ApiParameter) -> bool:
    return parameter.place == "header" and parameter.name.lower() == KEY_HEADER.lower()


def _check_path(path: str, parameters: tuple[ApiParameter, ...]) -> None:
    if not _PATH.match(path) or not path.isprintable():
        raise BuildError("its path cannot be sent")
    declared = {each.name for each in parameters if each.place == "path"}
    missing = set(_NAMES.findall(path)) ^ declared
    if missing:
        names = printable(", ".join(sorted(missing)), 100)
        raise BuildError(f"its path and its path parameters differ in {names}")


def _body(document: ApiDocument, part: Any) -> tuple[str, Any, bool]:
    """Media type, schema and necessity of the request body; no media type: no body."""
    if part is None:
        return "", None, False
    declared = document.resolved(part, "the request body")
    content = declared.get("content")
    content = content if isinstance(content, Mapping) else {}
    for media, about in content.items():
        if is_json(media):
            schema = document.resolved(about, "a media type").get("schema", {})
            return media, schema, declared.get("required") is True
    if declared.get("required") is True:
        offered = printable(", ".join(content), 100)
        raise BuildError(f"its body cannot be JSON, but only {offered or 'nothing'}")
    return "", None, False


def _parameter_schema(writer: SchemaWriter, parameter: ApiParameter) -> Any:
    schema = writer.written(parameter.schema)
    if not isinstance(schema, Mapping) or not parameter.description or "description" in schema:
        return schema
    return {**schema, "description": parameter.description}


def _description(declared: Mapping[str, Any], found: OperationLocation) -> str:
    texts = [declared.get(key) for key in ("summary", "description")]
    text = "\n".join(text.strip() for text in texts if isinstance(text, str) and text.strip())
    return printable(text or f"{found.method.upper()} {found.path}", _LONGEST, lines=True)
