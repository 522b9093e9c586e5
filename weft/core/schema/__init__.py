"""Questions about JSON Schemas: whether a value of one can ever fit another, what is at a path.

A keyword that is not understood allows anything: only what is proved is reported, so there are no
false alarms.
"""

from weft.core.schema.comparison import mismatch
from weft.core.schema.lookup import array_of, at, declared, references
from weft.core.schema.type_schema import TypeSchema, closed, truncation_hint

__all__ = [
    "TypeSchema",
    "array_of",
    "at",
    "closed",
    "declared",
    "mismatch",
    "references",
    "truncation_hint",
]
