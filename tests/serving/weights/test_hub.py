from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest
from huggingface_hub import constants

from weft.serving.weights import hub
from weft.serving.weights.catalogue import HubSource, PinnedFile, SourceFailed, silent

FILES = {"config.json": b"{}", "model.safetensors": bytes(5000)}
SOURCE = HubSource(
    "owner/model",
    "abc123",
    tuple(
        PinnedFile(name, len(content), hashlib.sha256(content).hexdigest())
        for name, content in FILES.items()
    ),
)


def served(content: Callable[[str], bytes | Exception | int]) -> httpx2.MockTransport:
    """A hub that answers with bytes, a status, or not at all."""

    def handle(request: httpx2.Request) -> httpx2.Response:
        assert "/owner/model/resolve/abc123/" in request.url.path
        answer = content(request.url.path.rsplit("/", 1)[-1])
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, int):
            return httpx2.Response(answer)
        return httpx2.Response(200, content=answer)

    return httpx2.MockTransport(handle)


def test_pinned_files_arrive_with_their_progress(tmp_path: Path) -> None:
    steps: list[tuple[str, int, int]] = []
    hub.fetch(
        SOURCE,
        tmp_path,
        lambda *step: steps.append(step),
        transport=served(lambda name: FILES[name]),
    )
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == FILES
    assert steps[0] == ("hub", 0, 5002)
    assert steps[-1] == ("hub", 5002, 5002)


@pytest.mark.parametrize(
    ("answer", "temporary"),
    [
        (b"<html>log in first</html>", False),
        (bytes(4999) + b"x", False),
        (bytes(100_000), False),
        (404, True),
        (503, True),
        (httpx2.ConnectError("no route"), True),
        (httpx2.ReadTimeout("slow"), True),
    ],
)
def test_anything_else_is_a_failed_source(
    tmp_path: Path, answer: bytes | int | Exception, temporary: bool
) -> None:
    transport = served(lambda name: answer if name == "model.safetensors" else FILES[name])
    with pytest.raises(SourceFailed, match=r"model\.safetensors") as raised:
        hub.fetch(SOURCE, tmp_path, silent, transport=transport)
    assert raised.value.temporary is temporary
    written = [path.stat().st_size for path in tmp_path.glob("model.safetensors")]
    assert sum(written) <= 5000


def test_offline_mode_asks_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    transport = served(lambda _: pytest.fail("the hub was asked"))
    with pytest.raises(SourceFailed, match="HF_HUB_OFFLINE"):
        hub.fetch(SOURCE, tmp_path, silent, transport=transport)
