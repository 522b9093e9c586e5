"""What a run costs: weft as its users call it, its engine alone, bare asyncio and other frameworks.

Run with `python -m evals.engine`. Every system runs the same graphs of no-op nodes, each in a
process of its own, interleaved round by round. Knows no language model.
"""
