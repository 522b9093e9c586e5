"""Random texts of a grammar, byte by byte, as a model with no sense at all would write them."""

from __future__ import annotations

import random
from collections.abc import Mapping

from llguidance import LLMatcher, LLTokenizer

BYTES = LLTokenizer("byte")
_WEIGHTS: Mapping[int, float] = {
    **dict.fromkeys(range(128), 1.0),
    **dict.fromkeys(range(128, 256), 0.02),
    **dict.fromkeys(b"0123456789", 2.0),
    **dict.fromkeys(b'")],', 12.0),
    **dict.fromkeys(b"$\n fi", 20.0),
}
_TOO_LONG = 20_000


class Grammar:
    """A grammar that can be drawn from, and asked whether it holds a text."""

    def __init__(self, lark: str) -> None:
        self._matcher = LLMatcher(BYTES, LLMatcher.grammar_from_lark(lark), log_level=0)
        assert not self._matcher.is_error(), self._matcher.get_error()[:2000]

    def draw(self, source: random.Random) -> str:
        """One text of the grammar. Fails where the grammar leads into a trap."""
        matcher = self._matcher.deep_copy()
        text = bytearray()
        while not matcher.is_stopped():
            forced = matcher.compute_ff_bytes()
            if not forced:
                bias = matcher.compute_logit_bias()
                allowed = [byte for byte in range(256) if bias[byte]]
                assert allowed or matcher.is_accepting(), f"nothing can follow {text.decode()!r}"
                if not allowed:
                    break
                weights = [_WEIGHTS[byte] for byte in allowed]
                forced = bytes(source.choices(allowed, weights))
            matcher.consume_tokens(list(forced))
            text += forced
            assert len(text) < _TOO_LONG, f"it does not end: {text[-200:]!r}"
        assert not matcher.is_error(), matcher.get_error()[:2000]
        return text.decode()

    def holds(self, text: str) -> bool:
        """Whether `text` is in the language, to its end."""
        matcher = self._matcher.deep_copy()
        data = text.encode()
        taken: int = matcher.try_consume_tokens(list(data))
        return taken == len(data) and bool(matcher.is_accepting())
