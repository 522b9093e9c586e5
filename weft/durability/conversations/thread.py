"""Messages as the texts in which a store keeps them."""

from __future__ import annotations

from weft.core.codec import decode, encode
from weft.core.errors import StoreError
from weft.core.values import Message


def text_of(message: Message) -> str:
    """The message as JSON, media included."""
    return encode(message)


def message_of(text: str) -> Message:
    """The message that `text_of` wrote. Raises: `StoreError` for a damaged one."""
    try:
        message = decode(text)
    except (ValueError, TypeError, KeyError) as error:
        raise StoreError(f"a message of a conversation is damaged: {error}") from error
    if not isinstance(message, Message):
        raise StoreError("a message of a conversation is damaged: it is none")
    return message
