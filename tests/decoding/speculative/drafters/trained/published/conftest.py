from __future__ import annotations

from pathlib import Path

import pytest

from tests.serving.local.playback import EXACT
from weft.decoding.network.network import Network


@pytest.fixture(scope="module")
def network(tiny_path: Path) -> Network:
    return Network.load(tiny_path, EXACT)
