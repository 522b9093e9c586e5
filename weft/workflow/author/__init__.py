"""Workflows that a model writes in layers: intention, bullets, skeleton, fields, repairs.

After WorkflowLLM (arXiv 2411.05451) and Opus (arXiv 2412.00573). The model writes data under JSON
Schemas, never a file: the document is laid out here, and `weft check` decides.
"""
