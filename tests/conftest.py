from __future__ import annotations

import gc
import signal
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tests.profile  # noqa: F401 - loading it sets how Hypothesis looks for examples
from tests.quick import is_full_module, left_to_full

TESTS = Path(__file__).parent

if TYPE_CHECKING:
    from tests.live_vllm import LiveVllm
    from tests.serving.openai.scripted import EndpointServer


def pytest_configure() -> None:
    """A shell that starts us in the background has Ctrl-C ignored, which processes inherit."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # ignored below nohup, and inherited by servers


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected stays: the garbage collector need not look through it again and again.

    And torch computes in one thread: on cores that others use as well, two wait for each other for
    most of the time, and take up to thirty times as long.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()
        if torch := sys.modules.get("torch"):
            torch.set_num_threads(1)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Modules of which a target of the Makefile takes nothing are not even loaded."""
    if collection_path.suffix != ".py" or not config.option.markexpr.startswith("not slow"):
        return None
    chosen = config.option.markexpr
    if "not full" in chosen and is_full_module(collection_path.relative_to(TESTS)):
        return True
    return chosen.endswith("and vllm") and "mark.vllm" not in collection_path.read_text("utf-8")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Before the tests are chosen by their marks."""
    for at in left_to_full(items):
        items[at].add_marker(pytest.mark.full)


def pytest_unconfigure() -> None:
    """Else libraries say that what they bound is still there when the interpreter ends."""
    gc.unfreeze()


@pytest.fixture(autouse=True, scope="session")
def own_journal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Runs that tests make are recorded, but not among those of the person who runs the tests."""
    place = str(tmp_path_factory.mktemp("journal") / "journal.sqlite")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WEFT_JOURNAL", place)
        yield


@pytest.fixture(autouse=True, scope="session")
def no_width() -> Iterator[None]:
    """Prints are as wide as in a pipe, also where the shell or pytest-xdist sets a width."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("COLUMNS", raising=False)
        yield


@pytest.fixture(scope="session")
def endpoints() -> Iterator[EndpointServer]:
    """A server on 127.0.0.1 for scripted OpenAI-compatible endpoints: `endpoints.add(script)`."""
    from tests.serving.openai.scripted import PATIENCE_S, EndpointServer
    from weft.serving.openai import OpenAIModel

    with EndpointServer() as server, pytest.MonkeyPatch.context() as patch:
        # it is this process that stands still when a connection takes long
        patch.setitem(OpenAIModel.__init__.__kwdefaults__, "connect_timeout_s", PATIENCE_S)
        yield server


@pytest.fixture(scope="session")
def live_vllm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveVllm]:
    """A real vLLM on 127.0.0.1, shared by the tests marked `vllm` that ask for it."""
    pytest.importorskip("vllm", reason="vLLM is not installed")
    from tests.live_vllm import serving

    with serving(tmp_path_factory.mktemp("vllm")) as live:
        yield live
