"""Runs through the queue of a journal: submission, workers and schedules."""
