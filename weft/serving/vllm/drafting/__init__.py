"""Drafts for vLLM from token ids alone: from texts of requests, and from constraints.

Runs in vLLM's worker process. Imports neither vLLM nor torch, so that tests need neither.
"""
