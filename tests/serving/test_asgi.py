"""Servers for this machine only: which ports there are."""

from __future__ import annotations

import pytest

from weft.core.errors import SpecError
from weft.serving.asgi import LoopbackServer


@pytest.mark.parametrize("port", [-1, 65_536, 99_999])
def test_a_port_that_there_is_not_is_not_taken_for_another(port: int) -> None:
    with pytest.raises(SpecError, match=f"there is no port {port}"):
        LoopbackServer("127.0.0.1", port)
