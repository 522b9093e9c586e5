"""What it costs to keep what happened, in time and in bytes, beside LangGraph, DBOS and Prefect.

The systems and cases are those of `evals.engine`.
"""
