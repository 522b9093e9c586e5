"""Runs the threads of a protocol's grammar as engine nodes. Imports no protocol."""

from weft.reasoning.runtime.strategy import GrammarStrategy, strategy_of

__all__ = ["GrammarStrategy", "strategy_of"]
