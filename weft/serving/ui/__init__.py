"""A web page that shows the runs of a journal, live, to the person at this machine.

UiServer(journal, readers)   binds to loopback, serves, and stops; its `url` has the key in it

Reads the journal port and leaves letters; knows neither workflows nor what runs them.
"""

from weft.serving.ui.overview import RunReaders, RunTiming, RunValues
from weft.serving.ui.server import UiServer

__all__ = ["RunReaders", "RunTiming", "RunValues", "UiServer"]
