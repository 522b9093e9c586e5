"""What weft's planner is worth, run with `python -m evals.planning`.

Each section is a module with `async def run(effort) -> list[Row]`; it imports what is heavy only
when it runs.
"""
