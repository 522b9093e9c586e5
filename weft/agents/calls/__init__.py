"""Data for training and testing a function caller: queries with the calls that answer them.

read_tools(path)                tool schemas from a file
split(tools, share, seed)       tools for training, and others for testing
generate(tools, options)        items that passed all gates, and refusals with their reasons
generate_checked(attempts, ...) the same with gates that wait for tools or a model
CallModel(client)               a model as proposer, judge and rewriter
"""

from weft.agents.calls.catalogue import CallTool, read_tools, split
from weft.agents.calls.composed import compose_tools
from weft.agents.calls.execution import execution
from weft.agents.calls.gates import CallRefusal, check_item, format_gate, semantic
from weft.agents.calls.generate import (
    GenerateOptions,
    Outcome,
    generate,
    generate_checked,
    proposals,
)
from weft.agents.calls.item import STYLES, CallItem, GoldCall
from weft.agents.calls.model import CallModel, draw_tasks

__all__ = [
    "STYLES",
    "CallItem",
    "CallModel",
    "CallRefusal",
    "CallTool",
    "GenerateOptions",
    "GoldCall",
    "Outcome",
    "check_item",
    "compose_tools",
    "draw_tasks",
    "execution",
    "format_gate",
    "generate",
    "generate_checked",
    "proposals",
    "read_tools",
    "semantic",
    "split",
]
