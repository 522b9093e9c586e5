"""Drafts for vLLM from token ids alone: what requests wrote, and what the program knows.

Runs in vLLM's worker process. Knows neither vLLM nor torch, so that all of it is tested without.
"""
