"""Evaluation: cases and metrics over a workflow, as one recorded run.

`program` composes that run as a workflow, `evaluate` runs it, `result` reads its record. Knows no
optimiser and prints nothing.
"""
