"""Data for training and testing a function caller: queries with the calls that answer them.

read_tools(path)                tool schemas from a file
generate(tools, options)        items that passed all gates, and refusals with their reasons
split(tools, share, seed)       tools for training, and others for testing
"""

from weft.agents.calls.catalogue import CallTool, read_tools, split
from weft.agents.calls.gates import CallRefusal, check_item, execution, format_gate, semantic
from weft.agents.calls.generate import GenerateOptions, generate
from weft.agents.calls.item import STYLES, CallItem, GoldCall

__all__ = [
    "STYLES",
    "CallItem",
    "CallRefusal",
    "CallTool",
    "GenerateOptions",
    "GoldCall",
    "check_item",
    "execution",
    "format_gate",
    "generate",
    "read_tools",
    "semantic",
    "split",
]
