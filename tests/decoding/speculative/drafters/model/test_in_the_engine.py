"""Drafts in a thread beside the local engine: rows come and go, and their text is the plain one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.decoding.speculative.decoder_fixtures import like_it
from tests.decoding.speculative.test_conformance import answered, assert_same, requests
from tests.serving.local.playback import Playback
from weft.core.values import AUTOREGRESSIVE, Lossless


@pytest.mark.parametrize("name", ["pearl", "llmcad", "continuous"])
def test_rows_of_different_lengths(
    name: str, play: Callable[..., Playback], tiny_path: Path, tmp_path: Path
) -> None:
    spec = Lossless(name, (("model", str(like_it(tiny_path, tmp_path / "draft"))),))
    asked = requests(3, extra={"ignore_eos": True})
    wanted = answered(play, asked, AUTOREGRESSIVE)
    found = answered(play, asked, spec)
    assert_same(found, wanted)
    for one in found:
        assert one.speculation is not None
        assert (one.speculation.method, one.speculation.fallback) == (name, "")
    assert sum(one.speculation.accepted for one in found) > 0
    left = [thread for thread in threading.enumerate() if thread.name.startswith(f"weft-{name}")]
    assert not left, "the thread ends with the engine"
