"""What the engine costs: weft beside bare asyncio and its peers, run with `python -m evals.engine`.

Every system runs the same graphs of no-op nodes, interleaved round by round in one process; memory
is measured in a process of its own for each system and graph. Knows no language model.
"""
