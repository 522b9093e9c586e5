"""Tests of `weft.planner.rehearsal`."""
