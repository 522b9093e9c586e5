"""A document as YAML text: short values on one line, prompts as blocks."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.scalarstring import DoubleQuotedScalarString, LiteralScalarString

from weft.core.errors import BuildError
from weft.workflow.document.spec.document import WorkflowDocument, walk
from weft.workflow.document.spec.nodes import CallNode, ReduceNode, WorkflowNode
from weft.workflow.document.unit import ONLY_PYTHON, Unit, node_name

_WIDTH = 92
_SECTIONS = (
    "inputs",
    "models",
    "tools",
    "state",
    "run",
    "schedule",
    "evaluation",
    "optimise",
    "nodes",
    "outputs",
)


def to_yaml(document: WorkflowDocument) -> str:
    """The YAML text, which loads as an equal document."""
    return sections_text(document.model_dump(mode="json", by_alias=True, exclude_unset=True))


def sections_text(raw: Mapping[str, Any]) -> str:
    """The YAML text of a document in plain data, which need not be valid."""
    top = CommentedMap()
    for key, value in raw.items():
        if value or key not in _SECTIONS:
            top[key] = styled(value, 2 + len(key), inline=key not in _SECTIONS)
    for key in list(top)[1:]:
        if key in _SECTIONS:
            top.yaml_set_comment_before_after_key(key, before="\n")
    return _dump(top)


def yaml_text(value: Mapping[str, Any]) -> str:
    """Any plain data as YAML text, in the same style."""
    top: CommentedMap = styled(dict(value), 0, inline=False)
    return _dump(top)


def _dump(top: CommentedMap) -> str:
    yaml = YAML()
    yaml.width = 4096
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.allow_unicode = True
    stream = io.StringIO()
    yaml.dump(top, stream)
    return stream.getvalue()


def styled(value: Any, indent: int, *, inline: bool = True) -> Any:
    """`value` with its YAML style; on one line if it fits after `indent` characters."""
    made: CommentedMap | CommentedSeq
    if isinstance(value, dict):
        made = CommentedMap(
            {_key(key): styled(item, indent + 2 + len(key)) for key, item in value.items()}
        )
    elif isinstance(value, list):
        made = CommentedSeq([styled(item, indent + 4) for item in value])
    elif isinstance(value, str):
        return LiteralScalarString(value) if _is_block(value) else _key(value)
    else:
        return value
    if not value or (inline and _fits(value, indent)):
        made.fa.set_flow_style()
    return made


def _key(text: str) -> str:
    quoted: str = DoubleQuotedScalarString(text)
    # The emitter leaves `?a` and `:a` plain, which its own reader takes for indicators.
    return text if text.isprintable() and not text.startswith(("?", ":")) else quoted


def _fits(value: Any, indent: int) -> bool:
    return indent + len(json.dumps(value, ensure_ascii=False)) <= _WIDTH and not _has_lines(value)


def _has_lines(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_has_lines(item) for item in value.values())
    if isinstance(value, list):
        return any(_has_lines(item) for item in value)
    return isinstance(value, str) and _is_block(value)


def _is_block(text: str) -> bool:
    """True for several lines that a block scalar represents exactly."""
    lines = text.removesuffix("\n").split("\n")
    ends_well = bool(lines[-1]) and not text[0].isspace()
    return ("\n" in text and ends_well) and all(
        line.replace("\t", " ").isprintable() and line == line.rstrip() for line in lines
    )


def check_portable(unit: Unit) -> None:
    """Raise `BuildError` for the first function or client that no file can name."""
    document = unit.document
    for name, tool in document.tools.items():
        _check(tool.use or "", f"the tool `{name}`", unit)
        if str(tool.memory).startswith(ONLY_PYTHON):
            hint = "declare it: {memory: ./facts.sqlite, search: bm25}"
            raise BuildError(f"the memory `{name}` exists only in Python", hint=hint)
    for path, step in walk(document.nodes):
        if isinstance(step, CallNode):
            _check(step.call, f"the node `{node_name(path)}`", unit)
        elif isinstance(step, ReduceNode):
            _check(step.reduce, f"the node `{node_name(path)}`", unit)
        elif isinstance(step, WorkflowNode) and step.workflow.startswith(ONLY_PYTHON):
            hint = "write that one to a file first, and include the file"
            message = f"the node `{node_name(path)}` runs a workflow that exists only in Python"
            raise BuildError(message, hint=hint)
    for name in unit.clients:
        hint = "declare it: {use: openai, model: ..., base_url: ...}"
        raise BuildError(f"the model `{name}` is a client that exists only in Python", hint=hint)


def _check(reference: str, what: str, unit: Unit) -> None:
    if reference.startswith(ONLY_PYTHON):
        function = reference.removeprefix(ONLY_PYTHON)
        raise BuildError(
            f"{what} uses `{function}`, which no file can name",
            hint=f"move it to the top level of a file in {unit.folder}; a tool, and a function "
            "of an installed module, also needs @weft.tool",
        )
