"""Runs untrusted programs: typed outcomes, hard limits, refusal where one cannot be enforced."""
