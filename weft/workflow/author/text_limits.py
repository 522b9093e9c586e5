"""Whether a YAML text can hold what a model wrote: characters, keys, depth, length."""

from __future__ import annotations

from typing import Final

from ruamel.yaml.error import YAMLError

from weft.core.errors import SourceError
from weft.workflow.document.source import read_text
from weft.workflow.document.source.tree import plain
from weft.workflow.document.writer import yaml_text

_MOST_LEVELS: Final = 12
_MOST_TEXT: Final = 60_000


def fits_text(value: object) -> bool:
    """Whether a YAML text can hold the value of a model, with room for what is around it."""
    try:
        if _depth(value) > _MOST_LEVELS:
            return False
        text = yaml_text({"value": value})
        return len(text) <= _MOST_TEXT and plain(read_text(text, "")[1]) == {"value": value}
    except (SourceError, YAMLError, ValueError):
        return False


def _depth(value: object) -> int:
    """How deep lists and mappings are nested, as far as it is allowed."""
    depth, level = 0, [value]
    while level and depth <= _MOST_LEVELS:
        inner = [list(each.values()) if isinstance(each, dict) else each for each in level]
        level = [item for each in inner if isinstance(each, list) for item in each]
        depth += bool(level)
    return depth
