"""Grammars that a model is held to while it writes a plan, in llguidance's Lark dialect."""

from weft.planner.grammar.grammars import plan_grammar, step_grammar, typed_steps
from weft.planner.grammar.limits import GrammarLimits

__all__ = ["GrammarLimits", "plan_grammar", "step_grammar", "typed_steps"]
