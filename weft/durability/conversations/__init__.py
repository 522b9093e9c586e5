"""Conversations that outlive runs: windows, summaries, and recorded reads and writes."""

from weft.durability.conversations.thread import message_of, text_of
from weft.durability.conversations.tools import APPEND, READ, ConversationTools
from weft.durability.conversations.window import (
    WindowLimits,
    answered_calls,
    estimated_tokens,
    window_start,
)

__all__ = [
    "APPEND",
    "READ",
    "ConversationTools",
    "WindowLimits",
    "answered_calls",
    "estimated_tokens",
    "message_of",
    "text_of",
    "window_start",
]
