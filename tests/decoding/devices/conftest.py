from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from tests.serving.local.conftest import play, smollm2, tiny_path, vocabulary

__all__ = ["device", "play", "smollm2", "tiny_path", "vocabulary"]

if find_spec("torch") is None:  # without the `local` extra there is nothing to test
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session")
def registered() -> str:
    from tests import fake_device

    return fake_device.register()


@pytest.fixture
def device(registered: str) -> Iterator[str]:
    """A device other than the CPU, by its name. Modules that move there keep weights they share."""
    from torch.__future__ import set_swap_module_params_on_conversion

    set_swap_module_params_on_conversion(True)
    yield registered
    set_swap_module_params_on_conversion(False)
