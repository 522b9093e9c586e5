"""Documents, hostile ones among them, and what becomes of their operations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.agents.openapi.api_server import TEXT, answers, document
from tests.profile import examples
from weft.agents.openapi import OpenApiOptions, OpenApiTools
from weft.agents.openapi.document import read_document
from weft.core.errors import BuildError
from weft.core.values import ToolSpec
from weft.validation import misfit

HERE = OpenApiOptions("https://shop.example/v1")
YAML = """
openapi: 3.1.0
info: {title: Shop, version: 2020-01-01}
servers: [{url: "https://{region}.shop.example/v1", variables: {region: {default: eu}}}]
paths:
  /items:
    get:
      operationId: listItems
      responses:
        200:
          description: all of them
          content:
            application/json:
              schema: {type: [array, "null"], items: {$ref: "#/components/schemas/Item"}}
components:
  schemas:
    Item:
      type: object
      properties: {on: {type: boolean}, next: {$ref: "#/components/schemas/Item"}}
"""


def spec_of(operation: dict[str, Any], path: str = "/x", **root: Any) -> ToolSpec:
    doc = {
        **document(),
        "paths": {path: {"post": {"responses": {}, "operationId": "op", **operation}}},
        **root,
    }
    return OpenApiTools(doc, ["op"], HERE).specs()[0]


def parameter(**fields: Any) -> dict[str, Any]:
    return {"parameters": [{"name": "q", "in": "query", "schema": TEXT, **fields}]}


def test_yaml_and_json_are_read_from_files_and_bytes(tmp_path: Path) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(YAML, "utf-8")
    from_yaml = OpenApiTools(file, ["listItems"]).specs()
    as_json = json.dumps(read_document(YAML.encode()).root)
    for source in (as_json.encode(), b"\xef\xbb\xbf" + as_json.encode(), json.loads(as_json)):
        assert OpenApiTools(source, ["listItems"]).specs() == from_yaml
    schema = from_yaml[0].result
    assert schema is not None
    assert schema["$defs"]["Item"]["properties"]["next"] == {"$ref": "#/$defs/Item"}


def test_the_arguments_are_one_schema() -> None:
    doc = document()
    echo, get, add = (
        spec.parameters
        for spec in OpenApiTools(doc, ["echo", "GET /items/{id}", "add-item"], HERE).specs()
    )
    assert list(echo["properties"]) == [
        *("name_path", "name_query", "X_Tag", "crumb", "ids", "filter")
    ]
    assert echo["required"] == ["name_path"]
    assert get == {
        "type": "object",
        "properties": {"id": {"type": "integer"}},
        "required": ["id"],
        "additionalProperties": False,
    }
    item = add["$defs"]["Item"]
    assert add["properties"]["body"] == {"$ref": "#/$defs/Item"}
    assert "id" not in item["properties"]  # only the server sets it
    assert item["required"] == ["name"]
    for schema in (echo, get, add):
        jsonschema.Draft202012Validator.check_schema(schema)


def test_what_a_server_never_shows_is_no_part_of_its_answer() -> None:
    (spec,) = OpenApiTools(document(), ["getItem"], HERE).specs()
    assert spec.result is not None
    item = spec.result["$defs"]["Item"]
    assert set(item["properties"]) == {"id", "name", "parts"}


def test_names_are_identifiers_and_may_be_given() -> None:
    doc = document()
    tools = OpenApiTools(doc, {"fetch": "get /items/{id}", "add": "add-item"}, HERE, prefix="shop_")
    assert [spec.name for spec in tools.specs()] == ["shop_fetch", "shop_add"]
    unnamed = document(_a_b={"get": {"responses": {}}})
    (spec,) = OpenApiTools(unnamed, ["GET /a/b"], HERE).specs()
    assert spec.name == "get_a_b"
    assert spec.description == "GET /a/b"


def test_the_version_is_that_of_document_and_server() -> None:
    def version(doc: Any, url: str = "https://shop.example/v1") -> str:
        return OpenApiTools(doc, ["getItem"], OpenApiOptions(url)).specs()[0].version

    assert version(document()) == version(document())
    assert version(document()) != version(document(), "https://shop.example/v2")
    assert version(document()) != version(document(_more={"get": {}}))


def test_only_reading_is_pure_and_only_when_asked() -> None:
    for asked in (False, True):
        options = OpenApiOptions("https://shop.example/v1", pure=asked)
        specs = OpenApiTools(document(), ["getItem", "add-item", "deleteItem"], options).specs()
        assert [spec.pure for spec in specs] == [asked, False, False]


def test_successful_answers_share_one_schema() -> None:
    def result(**responses: Any) -> Any:
        return spec_of({"responses": {key.lstrip("s"): about for key, about in responses.items()}})

    text, number = answers(TEXT)["200"], answers({"type": "integer"})["200"]
    assert result(s200=text).result == TEXT
    assert result(s200=text, s404=number).result == TEXT
    assert result(s200=text, s201=number).result == {"anyOf": [TEXT, {"type": "integer"}]}
    assert result(s200=text, s204={}).result == {"anyOf": [TEXT, {"type": "null"}]}
    assert result(default=text).result == TEXT
    assert result(s2xx=text).result == TEXT
    assert result(s200={"content": {"text/csv": {}}}).result == {"type": "string"}
    assert result(s200={"content": {"image/png": {}}}).result is None
    assert result(s200={"content": {"application/json": {}}}).result is None
    assert result().result is None


def test_openapi_3_0_schemas_become_json_schemas() -> None:
    def written(schema: Any) -> Any:
        return spec_of(parameter(schema=schema)).parameters["properties"]["q"]

    assert written({"type": "string", "nullable": True}) == {"type": ["string", "null"]}
    assert written({"type": "string", "nullable": True, "enum": ["a"]}) == {
        "type": ["string", "null"],
        "enum": ["a", None],
    }
    assert written({"minimum": 1, "exclusiveMinimum": True}) == {"exclusiveMinimum": 1}
    assert written({"maximum": 1, "exclusiveMaximum": False}) == {"maximum": 1}
    assert written({"nullable": True, "minimum": 1}) == {
        "anyOf": [{"minimum": 1}, {"type": "null"}]
    }
    assert written({"$ref": "#/components/schemas/Item", "nullable": True}) == {
        "$ref": "#/$defs/Item"
    }


def test_openapi_3_1_schemas_stay_what_they_are() -> None:
    schema = {"$ref": "#/components/schemas/Item", "description": "mine"}
    spec = spec_of(parameter(schema=schema), openapi="3.1.0")
    assert spec.parameters["properties"]["q"] == {
        "allOf": [{"$ref": "#/$defs/Item"}, {"description": "mine"}]
    }


def test_a_reference_of_equal_name_elsewhere_gets_a_name_of_its_own() -> None:
    doc = document()
    doc["components"]["responses"] = {"Item": {"type": "string"}}
    doc["paths"]["/page"]["get"]["responses"] = answers(
        {
            "type": "object",
            "properties": {
                "a": {"$ref": "#/components/schemas/Item"},
                "b": {"$ref": "#/components/responses/Item"},
            },
        }
    )
    (spec,) = OpenApiTools(doc, ["page"], HERE).specs()
    assert spec.result is not None
    assert spec.result["$defs"]["Item_2"] == {"type": "string"}
    assert misfit({"b": "x"}, spec.result) is None
    assert misfit({"b": 1}, spec.result) is not None


def test_a_schema_too_large_to_check_with_is_told_and_not_used() -> None:
    huge = {"type": "object", "properties": {f"p{n}": TEXT for n in range(8000)}}
    doc = document(_page={"get": {"operationId": "page", "responses": answers(huge)}})
    tools = OpenApiTools(doc, ["page", "echo"], HERE)
    assert tools.specs()[0].result is None
    assert list(tools.unchecked) == ["page"]
    assert "parts" in tools.unchecked["page"]


def test_patterns_are_checked_in_linear_time() -> None:
    spec = spec_of(parameter(schema={"type": "string", "pattern": "(a+)+$"}))
    assert misfit({"q": "a" * 60}, spec.parameters) is None
    assert misfit({"q": "a" * 60 + "b"}, spec.parameters) is not None


LOOPS: dict[str, Any] = {
    "A": {"$ref": "#/components/schemas/B"},
    "B": {"$ref": "#/components/schemas/A"},
}


@pytest.mark.parametrize(
    ("operation", "word"),
    [
        (parameter(**{"in": "body"}), "'body'"),
        (parameter(style="matrix"), "matrix"),
        (parameter(content={"text/x": {}}, schema=None), "neither plain nor JSON"),
        (parameter(**{"in": "header", "name": "Host", "required": True}), "Host"),
        (
            parameter(**{"in": "header", "name": "X-HTTP-Method", "required": True}),
            "not the caller",
        ),
        (parameter(**{"in": "header", "name": "a b", "required": True}), "no name of a header"),
        (parameter(**{"in": "path"}), "differ in q"),
        (parameter(schema={"$ref": "#/nowhere"}), "leads nowhere"),
        (parameter(schema={"$ref": "http://evil.example/schema.json"}), "out of the document"),
        (parameter(schema={"$ref": "file:///etc/passwd"}), "out of the document"),
        (parameter(schema={"type": "no such type"}), "not a JSON Schema"),
        (parameter(schema={"type": "object", "properties": 3}), "properties"),
        ({"parameters": 3}, "must be a list"),
        ({"parameters": [3]}, "must be an object"),
        ({"parameters": [{"$ref": "#/paths"}]}, "has no name"),
        ({"responses": 3}, "must be an object"),
        ({"requestBody": {"required": True, "content": {"text/xml": {}}}}, "text/xml"),
        ({"requestBody": 3}, "request body"),
        ({"requestBody": {"$ref": "#/components/loop"}}, "refers to itself"),
    ],
)
def test_an_operation_that_cannot_be_called_says_why(operation: Any, word: str) -> None:
    loop: Any = {"components": {"loop": {"$ref": "#/components/loop"}, "schemas": {}}}
    with pytest.raises(BuildError, match="POST /x") as raised:
        spec_of(operation, **loop)
    assert word in str(raised.value)


def test_headers_that_are_described_elsewhere_are_no_arguments() -> None:
    headers = [
        {"name": name, "in": "header", "schema": TEXT}
        for name in ("Accept", "content-type", "Authorization", "Cookie", "X-Fine")
    ]
    assert list(spec_of({"parameters": headers}).parameters["properties"]) == ["X_Fine"]


def test_a_schema_that_only_refers_to_itself_is_left_out() -> None:
    doc = document()
    doc["components"]["schemas"] = LOOPS
    doc["paths"]["/page"]["get"]["responses"] = answers({"$ref": "#/components/schemas/A"})
    (spec,) = OpenApiTools(doc, ["page"], HERE).specs()
    assert spec.result is None


@pytest.mark.parametrize(
    ("path", "word"),
    [("/a b", "cannot be sent"), ("/x\r\nHost: y", "cannot be sent"), ("/{a}", "differ in a")],
)
def test_a_path_that_cannot_be_sent(path: str, word: str) -> None:
    with pytest.raises(BuildError, match=word):
        spec_of({}, path)


@pytest.mark.parametrize(
    ("wanted", "word"),
    [
        ([], "no operation is listed"),
        ("getItem", "must be a list"),
        (["getItems"], "getItem"),
        (["GET /item/{id}"], "GET /items/{id}"),
        (["getItem", "getItem"], "twice"),
        (["getItem", "GET /items/{id}"], "twice"),
        ([3], "names no operation"),
        (["*"], "no operation"),
    ],
)
def test_operations_are_named_one_by_one(wanted: Any, word: str) -> None:
    with pytest.raises(BuildError) as raised:
        OpenApiTools(document(), wanted, HERE)
    assert word in str(raised.value)


def test_an_id_that_two_operations_have_means_neither() -> None:
    doc = document(_other={"get": {"operationId": "getItem", "responses": {}}})
    with pytest.raises(BuildError, match="several") as raised:
        OpenApiTools(doc, ["getItem"], HERE)
    assert "GET /items/{id}" in str(raised.value)


@pytest.mark.parametrize(
    ("servers", "url"),
    [
        ([{"url": "https://a.example/v1"}], "https://a.example/v1"),
        (
            [{"url": "https://{r}.example", "variables": {"r": {"default": "b"}}}],
            "https://b.example",
        ),
        ([{"url": "/v1"}], None),
        ([{"url": "ftp://a.example"}], None),
        ([{"url": "https://u:p@a.example"}], None),
        ([{"url": "https://a.example/?x=1"}], None),
        ([], None),
        (None, None),
    ],
)
def test_the_server_is_the_documents_unless_it_is_given(servers: Any, url: str | None) -> None:
    doc = document() | {"servers": servers}
    if url is None:
        with pytest.raises(BuildError):
            OpenApiTools(doc, ["page"])
    else:
        assert OpenApiTools(doc, ["page"]).specs()[0].version.endswith(f":{url}")
    assert OpenApiTools(doc, ["page"], HERE).specs()[0].version.endswith("shop.example/v1")


DEEP = b'{"openapi": "3.0.0", "x": ' + b"[" * 150 + b"]" * 150 + b"}"
BOMB = "openapi: 3.0.0\na: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join([f'*{chr(97 + n)}'] * 9)}]\n" for n in range(8)
)


@pytest.mark.parametrize(
    ("source", "word"),
    [
        (b"", "an object"),
        (b"[1]", "an object"),
        (b"{", "cannot be read"),
        (b"\xff\xfe", "cannot be read"),
        (b"a: b: c", "cannot be read"),
        (b"a: 1\na: 2", "cannot be read"),
        (b"a: !!python/object/apply:os.system [ls]", "cannot be read"),
        (b"{}", "has no `openapi: 3.x`"),
        (b'{"swagger": "2.0"}', "has no `openapi: 3.x`"),
        (b'{"openapi": "2.0"}', "'2.0'"),
        (b'{"openapi": "3.10"}', "'3.10'"),
        (b'{"openapi": "3.0.0", "x": NaN}', "cannot be read"),
        (DEEP, "deeper"),
        (BOMB.encode(), "500,000 values"),
        (b"openapi: 3.0.0\nx: &x [*x]", "deeper"),
        (b"openapi: 3.0.0\n? [a]\n: 1", "key"),
        (b"openapi: 3.0.0\n\xc3\x28: 1", "cannot be read"),
        (b" " * (5 * 2**20), "larger"),
        ({"openapi": "3.0.0", "x": object()}, "object"),
        ({"openapi": "3.0.0", "paths": 3}, "paths"),
        ({"openapi": "3.0.0", "paths": {"/x": 3}}, "/x"),
        (Path("/nowhere/shop.yaml"), "cannot read"),
    ],
)
def test_a_document_that_is_none_says_why(source: Any, word: str) -> None:
    with pytest.raises(BuildError) as raised:
        OpenApiTools(source, ["x"], HERE)
    assert word in str(raised.value)


KEYS = [
    "$ref",
    "in",
    "name",
    "schema",
    "content",
    "application/json",
    "required",
    "type",
    "properties",
    "items",
    "200",
    "default",
    "style",
    "allOf",
    "nullable",
    "q",
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "#/x", "string", "q"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(KEYS),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON, JSON, JSON)
@examples(300)
def test_any_operation_is_a_tool_or_a_build_error(parameters: Any, body: Any, replies: Any) -> None:
    operation = {"parameters": parameters, "requestBody": body, "responses": replies}
    try:
        spec = spec_of(operation)
    except BuildError:
        return
    jsonschema.Draft202012Validator.check_schema(spec.parameters)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"timeout_s": 0}, "timeout_s"),
        ({"retries": -1}, "retries"),
        ({"private": ("10.0.0.0/99",)}, "private"),
        ({"private": ("localhost",)}, "private"),
    ],
)
def test_options_out_of_range_are_refused(options: Any, word: str) -> None:
    with pytest.raises(BuildError, match=word):
        OpenApiOptions(**options)


@pytest.mark.parametrize(
    ("scheme", "auth_env", "word"),
    [
        ({"type": "mutualTLS"}, "K", "cannot be used"),
        ({"type": "http", "scheme": "digest"}, "K", "cannot be used"),
        ({"type": "apiKey", "in": "header", "name": "Host"}, "K", "cannot be used"),
        ({"type": "apiKey", "in": "header", "name": "a\r\nb"}, "K", "cannot be used"),
        ({"type": "apiKey", "in": "body", "name": "x"}, "K", "cannot be used"),
        ({"type": "http", "scheme": "bearer"}, {"other": "K"}, "none of the keys"),
    ],
)
def test_keys_that_cannot_be_sent_are_found_before_the_run(
    scheme: Any, auth_env: Any, word: str
) -> None:
    doc = document() | {"security": [{"lock": []}]}
    doc["components"]["securitySchemes"] = {"lock": scheme}
    with pytest.raises(BuildError, match=word):
        OpenApiTools(doc, ["page"], OpenApiOptions("https://x.example", auth_env=auth_env))


def test_the_first_requirement_that_can_be_met_is_met() -> None:
    doc = document() | {"security": [{"a": [], "b": []}, {"b": []}, {}]}
    bearer = {"type": "http", "scheme": "bearer"}
    doc["components"]["securitySchemes"] = {"a": bearer, "b": bearer}
    for auth_env in ("K", {"b": "K"}, {"a": "K", "b": "K"}, {}):
        OpenApiTools(doc, ["page"], OpenApiOptions("https://x.example", auth_env=auth_env))
