"""What vLLM costs a program with and without a client that knows the program.

`python -m evals.serving` runs it; the method is described in docs/benchmarks/serving.md.
"""
