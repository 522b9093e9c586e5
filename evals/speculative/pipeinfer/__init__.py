"""PipeInfer (arXiv 2407.11798): a target in stages, runs in flight, and runs that are called off.

For one sequence. No decoder of the library: a model in this process is on one device, and stages
pay where each has its own. In threads and on a virtual clock, to be measured.
"""
