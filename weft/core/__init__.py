"""The bottom of the house: values, ids, errors, events, budgets, ports. Standard library only."""
