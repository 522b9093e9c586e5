"""ParallelBench (arXiv 2510.04767): tasks on which writing tokens in parallel costs quality.

Questions are drawn here from seeds, by the rules of the paper: nothing of its data is copied.
"""
