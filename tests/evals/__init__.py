"""Tests of the evaluations: what they run and report, never how fast."""
