"""Runs through a queue: submission, workers and schedules."""

from weft.workflow.queue.submission import SubmittedRun, submit
from weft.workflow.queue.worker import Worker, WorkerEvent

__all__ = ["SubmittedRun", "Worker", "WorkerEvent", "submit"]
