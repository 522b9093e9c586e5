"""Decides what happens next in a run. Pure: no clock, no I/O, no tasks."""
