"""Changes of a document, written into its YAML text: comments and layout elsewhere stay."""

from __future__ import annotations

import difflib
import io
import json
from collections.abc import Mapping
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.util import load_yaml_guess_indent

from weft.core.errors import BuildError, SourceError
from weft.workflow.document.loader import parse
from weft.workflow.document.source import read_text
from weft.workflow.document.spec.document import WorkflowDocument
from weft.workflow.document.writer import styled, to_yaml


def plain_document(document: WorkflowDocument) -> dict[str, Any]:
    """The document as plain data with the keys of a file; without what was left to defaults."""
    return document.model_dump(mode="json", by_alias=True, exclude_unset=True)


def rewritten(text: str, before: WorkflowDocument, after: WorkflowDocument) -> str:
    """`text`, which is that of `before`, changed so that it loads as `after`.

    Only what differs is written anew. A text whose layout does not allow that, such as one with
    aliases, is written anew as a whole, without its comments.

    Raises: `BuildError` for a document that no text may hold, since it is too deep or too large.
    """
    target = plain_document(after)
    for new in (_changed(text, plain_document(before), target), to_yaml(after)):
        if _loads_as(new, target):
            return new
    raise BuildError("no file can hold the changed workflow", hint="it is too deep or too large")


def _changed(text: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """`text` with what differs between `before` and `after`, as far as its layout allows."""
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 4096
    _, indent, offset = load_yaml_guess_indent(text)
    top = yaml.load(text)
    if not isinstance(top, CommentedMap):
        return text
    if indent and offset is not None:
        yaml.indent(mapping=2, sequence=max(indent, offset + 2), offset=offset)
    _merge(top, before, after)
    stream = io.StringIO()
    yaml.dump(top, stream)
    return stream.getvalue()


def document_diff(before: WorkflowDocument, after: WorkflowDocument) -> str:
    """The difference of two documents as a unified diff of their YAML texts; empty if equal."""
    return "\n".join(text_diff(to_yaml(before), to_yaml(after), before.name, after.name))


def text_diff(before: str, after: str, name: str, then: str) -> list[str]:
    """The unified diff of two texts, in lines."""
    old, new = before.splitlines(), after.splitlines()
    return list(difflib.unified_diff(old, new, name, then, lineterm="", n=2))


def _loads_as(text: str, target: Mapping[str, Any]) -> bool:
    try:
        found = parse(*read_text(text, "<text>"))
    except SourceError:
        return False
    return not _differs(plain_document(found), target)


def _merge(node: CommentedMap, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Write the differences of two values of `node`, whose order may differ from both."""
    for key in [key for key in node if key in before and key not in after]:
        del node[key]
    previous: str | None = None
    for key, value in after.items():
        if key not in node:
            place = 0 if previous is None else list(node).index(previous) + 1
            node.insert(place, key, styled(value, 2 + len(key)))
        elif key not in before or _differs(before[key], value):
            _replace(node, key, before.get(key), value)
        previous = key


def _replace(node: CommentedMap, key: str, before: Any, after: Any) -> None:
    inner = node[key]
    if (
        isinstance(inner, CommentedMap)
        and isinstance(before, dict)
        and isinstance(after, dict)
        and after
        and [key for key in before if key in after] == [key for key in after if key in before]
    ):
        _merge(inner, before, after)
    else:
        node[key] = styled(after, 2 + len(key))


def _differs(one: object, other: object) -> bool:
    """Whether two values differ, the order of keys included: a model reads schemas in order."""
    return json.dumps(one) != json.dumps(other)
