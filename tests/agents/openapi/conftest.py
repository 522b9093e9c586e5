from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.agents.openapi.api_server import Shop


@pytest.fixture(scope="session")
def open_shop() -> Iterator[Shop]:
    with Shop() as shop:
        yield shop


@pytest.fixture
def shop(open_shop: Shop) -> Shop:
    open_shop.requests.clear()
    open_shop.reply = None
    return open_shop
