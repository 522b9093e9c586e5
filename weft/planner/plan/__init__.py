"""What a model writes: a plan of calls, as values and as text.

# both prices can be looked up at once
1. price(item="tea")
2. price(item="coffee")
3. total(amounts=[$1.amount, $2.amount])
4. describe(text=$item.title, place=$index) for each $3.lines
5. warn(text="too dear: over $3") if $3.sum > 10
6. join($3, $4)
"""

from weft.planner.plan.plan import (
    Condition,
    Here,
    Operator,
    Plan,
    Ref,
    Step,
    Value,
    refs_in,
)

__all__ = ["Condition", "Here", "Operator", "Plan", "Ref", "Step", "Value", "refs_in"]
