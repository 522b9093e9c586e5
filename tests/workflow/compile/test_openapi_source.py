"""`openapi:` under `tools:`: operations of a document as tools of a workflow."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import weft
from tests.agents.openapi.api_server import Shop, document
from weft.core.errors import SourceError
from weft.core.values import ToolCall
from weft.testing import FakeModel, FakeTools, Reply

FLOW = """
name: f
inputs: {{n: {{type: integer, default: 3}}}}
models: {{small: "local:m"}}
tools:
  shop:
    openapi:
      document: ./shop.json
      operations: {operations}
      base_url: {url}
      private: [127.0.0.0/8]
{more}
nodes:
{nodes}
outputs: {{x: "{{{{ a }}}}"}}
"""
RENAMED = "{getItem: 'GET /items/{id}', add_item: add-item}"
GET = 'a: {tool: shop.getItem, with: {id: "{{ n }}"}}'


@pytest.fixture(scope="module")
def shop() -> Iterator[Shop]:
    with Shop() as shop:
        yield shop


def flow(
    folder: Path,
    *nodes: str,
    url: str = "https://shop.example/v1",
    operations: str = "[getItem, add-item]",
    more: str = "",
) -> weft.Flow:
    (folder / "shop.json").write_text(json.dumps(document()), "utf-8")
    lines = "\n".join(f"  {node}" for node in nodes or [GET])
    text = FLOW.format(nodes=lines, url=url, operations=operations, more=more)
    return weft.loads(text, str(folder / "f.yaml"))


def test_operations_are_called(tmp_path: Path, shop: Shop) -> None:
    made = flow(
        tmp_path,
        GET.replace("a:", "item:"),
        'added: {tool: shop.add-item, with: {body: {name: "{{ item.parts[0].name }}"}}}',
        'a: {value: "{{ added.name }} {{ item.id }}"}',
        url=shop.url,
    )
    made.check()
    result = made.run_sync()
    assert result.ok, result.reasons
    assert result["x"] == "leaf 3"


@pytest.mark.parametrize(("more", "sent"), [("", 2), ("      pure: true", 1)])
def test_equal_readings_are_sent_once_when_asked(
    tmp_path: Path, shop: Shop, more: str, sent: int
) -> None:
    made = flow(tmp_path, GET, GET.replace("a:", "b:"), url=shop.url, more=more)
    shop.requests.clear()
    assert made.run_sync().ok
    assert len(shop.requests) == sent


def test_a_model_is_offered_them(tmp_path: Path, shop: Shop) -> None:
    call = ToolCall("1", "shop_getItem", '{"id": 7}')
    model = FakeModel([Reply(tool_calls=(call,))])
    made = flow(tmp_path, "a: {model: small, prompt: hi, tools: [shop]}", url=shop.url)
    result = made.run_sync(models={"small": model})
    assert result.ok, result.reasons
    assert [tool.name for tool in model.requests[0].tools] == ["shop_getItem", "shop_add_item"]


@pytest.mark.parametrize(
    ("nodes", "line", "message"),
    [
        (('a: {tool: shop.getItem, with: {id: "x"}}',), 14, "id"),
        (("a: {tool: shop.getItem, with: {}}",), 14, "id"),
        (("a: {tool: shop.deleteItem, with: {id: 1}}",), 14, "no tool `deleteItem`"),
        ((GET.replace("a:", "b:"), "a: {value: '{{ b.name.first }}'}"), 15, "first"),
    ],
)
def test_checking_knows_what_they_take_and_return(
    tmp_path: Path, nodes: tuple[str, ...], line: int, message: str
) -> None:
    with pytest.raises(SourceError) as raised:
        flow(tmp_path, *nodes).check()
    assert raised.value.line == line
    assert message in raised.value.message


@pytest.mark.parametrize(
    ("settings", "line", "message"),
    [
        ({"operations": "[getItems]"}, 7, "no operation 'getItems'"),
        ({"operations": "[]"}, 7, "no operation is listed"),
        ({"url": "shop.example"}, 7, "no address"),
        ({"url": "http://shop.example", "more": "      auth_env: KEY"}, 7, "in clear"),
        ({"more": "      api_key: abc"}, 12, "unknown key `api_key`"),
        ({"more": "      auth_env: 'my key'"}, 12, "is not a name"),
        ({"more": "      auth_env: {a: 'my key'}"}, 12, "is not a name"),
        ({"operations": "getItem"}, 9, "must be a list"),
        ({"operations": "[1]"}, 9, "1 is no operation"),
        ({"operations": "{get-it: getItem}"}, 9, "'get-it' cannot be the name"),
        ({"more": "      timeout: soon"}, 12, "timeout"),
        ({"more": "    only: [getItem]"}, 12, "`only` does not go with `openapi`"),
        ({"more": "    use: ./tools.py:x"}, 6, "says both `use` and `openapi`"),
    ],
)
def test_what_is_wrong_is_told_at_its_place(
    tmp_path: Path, settings: dict[str, str], line: int, message: str
) -> None:
    with pytest.raises(SourceError) as raised:
        flow(tmp_path, **settings).check()
    assert message in raised.value.message
    assert raised.value.line == line


@pytest.mark.parametrize("path", ["../shop.json", "/etc/passwd", "./other.json"])
def test_the_document_lies_beside_the_workflow(tmp_path: Path, path: str) -> None:
    made: dict[str, Any] = {"openapi": {"document": path, "operations": ["getItem"]}}
    text = f"name: f\ntools:\n  shop: {json.dumps(made)}\nnodes: {{a: {{value: 1}}}}\n"
    file = tmp_path / "f.yaml"
    file.write_text(text + "outputs: {x: '{{ a }}'}\n", "utf-8")
    with pytest.raises(SourceError, match=r"cannot read|leads out"):
        weft.load(file).check()


def test_fakes_stand_in_and_files_round_trip(tmp_path: Path) -> None:
    made = flow(tmp_path, more="      auth_env: {bearer: SHOP_KEY}")
    assert made.run_sync(tools=FakeTools(shop_getItem=lambda **item: item)).ok
    again = weft.loads(made.to_yaml(), str(tmp_path / "again.yaml"))
    assert again.document.tools == made.document.tools
    one = flow(tmp_path, more="      auth_env: SHOP_KEY", operations=RENAMED)
    assert "auth_env: SHOP_KEY" in one.to_yaml()


def test_a_cached_result_belongs_to_the_documents_content(tmp_path: Path) -> None:
    from weft.workflow.compile.identity import cache_of

    def identity() -> Any:
        made = flow(tmp_path, GET[:-1] + ", cache: true}")
        return cache_of(made.nodes["a"], made.unit)

    first = identity()
    assert identity() == first
    (tmp_path / "shop.json").write_text(json.dumps(document(_more={"get": {}})), "utf-8")
    made = weft.loads(
        FLOW.format(
            nodes=f"  {GET[:-1]}, cache: true}}",
            url="https://shop.example/v1",
            operations="[getItem, add-item]",
            more="",
        ),
        str(tmp_path / "f.yaml"),
    )
    assert cache_of(made.nodes["a"], made.unit) != first
