"""Grammars that constrain a model while it writes a plan, in llguidance's Lark dialect."""

from weft.planner.grammar.grammars import loosened, most_steps, plan_grammar, step_grammar
from weft.planner.grammar.limits import GrammarLimits

__all__ = ["GrammarLimits", "loosened", "most_steps", "plan_grammar", "step_grammar"]
