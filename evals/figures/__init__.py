"""Figures in texts, read from the rows of the evaluations that measured them.

    <!--=engine chain_100/weft/median_ms / chain_100/asyncio/median_ms .2f-->2.18<!--/-->

`python -m evals.figures` rewrites README.md and docs/ from docs/benchmarks/*.json; `--check` only
says where they differ, and where a measured number has no marker.
"""
