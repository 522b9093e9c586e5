"""Questions about JSON Schemas: can a value of one ever fit another; what lies at a path.

A keyword that is not understood counts as "anything may be": answers are only given where they can
be proved, so there are no false alarms.
"""

from weft.core.schema.comparison import mismatch
from weft.core.schema.lookup import array_of, at, declared, references

__all__ = ["array_of", "at", "declared", "mismatch", "references"]
