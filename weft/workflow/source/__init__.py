"""Text to a tree with places. Knows YAML, but nothing of workflows."""

from weft.workflow.source.place import Path, Place, Source
from weft.workflow.source.reader import read_file, read_text
from weft.workflow.source.tree import Mapping, Scalar, Sequence, Tree

__all__ = [
    "Mapping",
    "Path",
    "Place",
    "Scalar",
    "Sequence",
    "Source",
    "Tree",
    "read_file",
    "read_text",
]
