from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.serving.openai.scripted import EndpointServer


@pytest.fixture(scope="session")
def endpoints() -> Iterator[EndpointServer]:
    """A server on 127.0.0.1 for scripted OpenAI-compatible endpoints: `endpoints.add(script)`."""
    from tests.serving.openai.scripted import EndpointServer

    with EndpointServer() as server:
        yield server
