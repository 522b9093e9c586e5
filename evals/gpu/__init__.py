"""What a machine with one GPU is to show, in one command; a fake device walks through all of it.

`python -m evals.gpu` runs it; docs/benchmarks/gpu.md describes it.
"""
