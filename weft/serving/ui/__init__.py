"""A web page that shows the runs of a journal, live, to the user of this machine.

UiServer(journal, readers)   binds to loopback, serves, and stops; its `url` contains the key

Reads the journal port and writes signals to it. Imports nothing of workflows or the engine.
"""

from weft.serving.ui.experiments import ExperimentReaders
from weft.serving.ui.overview import RunReaders, RunTiming, RunValues
from weft.serving.ui.server import UiServer

__all__ = ["ExperimentReaders", "RunReaders", "RunTiming", "RunValues", "UiServer"]
