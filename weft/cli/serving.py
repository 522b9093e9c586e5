"""The display of model servers: their start, their address, how to use and stop them."""

from __future__ import annotations

import json
import os
import shlex
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from rich.console import Console
from rich.status import Status

from weft.cli.console import stdout
from weft.cli.text import clean, duration, one_line

if TYPE_CHECKING:
    from weft.serving.vllm.launch.command import Launch
    from weft.serving.vllm.launch.spec import ServeSpec
    from weft.serving.vllm.supervise.registry import ServingEntry


class ServingView:
    """A context manager: one moving line on a terminal while servers start, else a line a stage."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._began = time.monotonic()
        self._starting = True
        self._status: Status | None = None

    def __enter__(self) -> ServingView:
        if self._console.is_terminal:
            self._status = self._console.status("starting")
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop_status()

    def show(self, text: str) -> None:
        """Show a stage of the start, or a later event."""
        if self._starting and self._status is not None:
            self._status.update(one_line(text, self._console.width - 4))
            return
        after = f"{duration(time.monotonic() - self._began):>9}"
        when = after if self._starting else time.strftime("%H:%M:%S")
        self._console.print(f"{when}  {clean(text)}", soft_wrap=True)

    def ready(self, entry: ServingEntry) -> None:
        """Show that all replicas serve."""
        self._starting = False
        self._stop_status()
        print_ready(entry, detached=False)

    def _stop_status(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None


def print_ready(entry: ServingEntry, *, detached: bool) -> None:
    """Print to stdout where a server is, how to use it and how to stop it."""
    took = duration(time.time() - entry.started_at)
    stop = f"weft stop {entry.id}"
    rows = [
        *_use(entry),
        ("log", entry.replicas[0].log),
        ("stop", stop if detached else f"Ctrl-C, or {stop}"),
    ]
    console = stdout()
    console.print(clean(f"{entry.name} is ready after {took}, as {entry.id}"), soft_wrap=True)
    for label, text in rows:
        console.print(f"  {label:<8}  {clean(text)}", soft_wrap=True)


def _use(entry: ServingEntry) -> Iterator[tuple[str, str]]:
    if not entry.urls:
        yield "url", "none here: these are ranks of another machine's server"
        return
    message = {"role": "user", "content": "Hello"}
    body = json.dumps({"model": entry.name, "messages": [message]})
    key = f' -H "Authorization: Bearer ${entry.spec.api_key_env}"' if entry.spec.api_key_env else ""
    for url in entry.urls:
        yield "url", url
    yield "workflow", f"models: {{m: {{use: vllm, model: {entry.spec.model}}}}}"
    chat = f"{entry.urls[0]}/chat/completions"
    yield "try", f"curl {chat} -H 'Content-Type: application/json'{key}"
    yield "", f"  -d {shlex.quote(body)}"


def print_commands(launches: Iterable[Launch], spec: ServeSpec) -> None:
    """Print the shell command of each replica, after its additions to the environment."""
    secret = os.environ.get(spec.api_key_env) if spec.api_key_env else None
    for launch in launches:
        for name, value in sorted(launch.env.items()):
            is_secret = value == secret and secret is not None
            stdout().out(f"{name}={f'${spec.api_key_env}' if is_secret else shlex.quote(value)} \\")
        stdout().out(f"{shlex.join(launch.argv)}\n")
