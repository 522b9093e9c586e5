"""Answers in canonical form, so that equal answers count as equal in a vote.

`answer_key` reads a whole completion, `canonical` a bare answer. Both return None for an answer
that cannot be read, which never is a class of votes.
"""

from weft.reasoning.answers.extraction import answer_text
from weft.reasoning.answers.key import Reader, answer_key, canonical, choice_key, reader, schema_key

__all__ = ["Reader", "answer_key", "answer_text", "canonical", "choice_key", "reader", "schema_key"]
