"""YAML text to a tree of values with positions."""

from weft.workflow.document.source.reader import read_file, read_text
from weft.workflow.document.source.tree import (
    KeyPath,
    SourcePosition,
    SourceText,
    Tree,
    YamlMapping,
    YamlScalar,
    YamlSequence,
)

__all__ = [
    "KeyPath",
    "SourcePosition",
    "SourceText",
    "Tree",
    "YamlMapping",
    "YamlScalar",
    "YamlSequence",
    "read_file",
    "read_text",
]
