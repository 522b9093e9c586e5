from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

import tests.profile  # noqa: F401 - loading it sets how Hypothesis looks for examples

if TYPE_CHECKING:
    from tests.serving.openai.scripted import EndpointServer


def pytest_configure() -> None:
    """A shell that starts us in the background has Ctrl-C ignored, which processes inherit."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def endpoints() -> Iterator[EndpointServer]:
    """A server on 127.0.0.1 for scripted OpenAI-compatible endpoints: `endpoints.add(script)`."""
    from tests.serving.openai.scripted import EndpointServer

    with EndpointServer() as server:
        yield server
