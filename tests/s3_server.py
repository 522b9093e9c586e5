"""An S3-compatible server for tests, in this process, with buckets of their own for each test."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import pytest

ACCESS_KEY, SECRET_KEY = "AKIDFORTESTS", "s3cr3t-key-for-tests"


class S3Server:
    """A running server."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._numbers = count(1)

    def bucket(self) -> str:
        """The name of a new, empty bucket."""
        name = f"test-bucket-{next(self._numbers)}"
        request = urllib.request.Request(f"{self.url}/{name}", method="PUT")
        urllib.request.urlopen(request).close()
        return name

    def use(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let clients of this process find the server, as users do."""
        set_environment(monkeypatch, self.url)


def set_environment(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """The variables that name a server and its credentials."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", url)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """A running server. Skips the test that asks where there is none, and says why."""
    pytest.importorskip("obstore", reason="obstore is not installed (extra `s3`)")
    moto = pytest.importorskip("moto.server", reason="moto's server is not installed (extra `dev`)")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield S3Server(f"http://{host}:{port}")
    finally:
        server.stop()
