"""Reasoning and tool calls inside plain text, where the server does not tell them apart.

Works on text that arrives in pieces; knows no server and no tokenizer. And text that spells special
tokens, as ids of which none is one.
"""

from weft.serving.text.formats import FORMATS, FormatName, FoundCall, Piece
from weft.serving.text.plain import PlainText, Tokenized, only_blanks
from weft.serving.text.prompt import spell
from weft.serving.text.splitter import ReasoningStyle, Splitter

__all__ = [
    "FORMATS",
    "FormatName",
    "FoundCall",
    "Piece",
    "PlainText",
    "ReasoningStyle",
    "Splitter",
    "Tokenized",
    "only_blanks",
    "spell",
]
