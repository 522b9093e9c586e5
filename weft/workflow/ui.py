"""The page of the recorded runs: for the command line, and for programs of your own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from weft.core.errors import ServeError
from weft.workflow.journals import open_journal
from weft.workflow.runs.unsettled import unsettled

try:
    from weft.serving.ui import UiServer
except ModuleNotFoundError as error:
    hint = "pip install 'weft[gateway]'"
    raise ServeError(f"the page of the runs needs {error.name}", hint=hint) from error

__all__ = ["RunsPage"]


class RunsPage:
    """Shows the runs of a journal to who has its `url`, also those that other processes execute.

        page = RunsPage("runs.sqlite")
        await page.serve(lambda: print(page.url))

    `where` as for `open_journal`, but a journal that is named has to be there; it need not be
    writable to be looked at. `port` 0 is any that is free.
    Raises: `StoreError`, and `ServeError` when the port is taken.
    """

    def __init__(self, where: str | Path | None = None, port: int = 0) -> None:
        self._journal = open_journal(where, make=not where, to_read=True)
        try:
            self._server = UiServer(self._journal, unsettled, port)
        except ServeError:
            self._journal.close()
            raise

    @property
    def url(self) -> str:
        """The address with the key in it."""
        return self._server.url

    async def serve(self, ready: Callable[[], None] | None = None) -> None:
        """Serve until `stop`; `ready` is called when browsers can connect."""
        try:
            await self._server.serve(ready)
        finally:
            self._journal.close()

    def stop(self) -> None:
        """End `serve` soon. In the loop's thread."""
        self._server.stop()
