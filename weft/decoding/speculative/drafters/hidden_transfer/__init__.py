"""Hidden transfer (arXiv 2404.12022): states of positions to come, injected midway into a pass.

The authors' code was not found; layer and offsets are settings.
"""
