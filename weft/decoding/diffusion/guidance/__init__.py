"""Guidance of logits, and verifiers of proposals."""
