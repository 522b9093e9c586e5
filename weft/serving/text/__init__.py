"""Reasoning and tool calls in plain text, for servers that do not separate them.

Works on text that arrives in pieces; imports no server and no tokenizer. Also encodes text that
spells special tokens as ids without any.
"""

from weft.serving.text.formats import FORMATS, FormatName, FoundCall, Piece
from weft.serving.text.plain import PlainText, Tokenized, only_blanks
from weft.serving.text.prompt import spell
from weft.serving.text.reasoning_forms import ReasoningStyle
from weft.serving.text.separated import separated
from weft.serving.text.splitter import ReasoningParser, Splitter, answer_and_thought

__all__ = [
    "FORMATS",
    "FormatName",
    "FoundCall",
    "Piece",
    "PlainText",
    "ReasoningParser",
    "ReasoningStyle",
    "Splitter",
    "Tokenized",
    "answer_and_thought",
    "only_blanks",
    "separated",
    "spell",
]
