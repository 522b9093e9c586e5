"""Runs threads of a protocol as engine nodes. Knows ports and grammars, no protocol."""

from weft.reasoning.runtime.strategy import GrammarStrategy, strategy_of

__all__ = ["GrammarStrategy", "strategy_of"]
