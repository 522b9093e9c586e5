from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from tests.serving.local.conftest import play, smollm2, tiny_path, vocabulary

__all__ = ["device", "play", "smollm2", "tiny_path", "vocabulary"]

if find_spec("torch") is None:  # without the `local` extra there is nothing to test
    collect_ignore_glob = ["test_*.py"]
else:
    from tests import fake_device

    # before the first test: with the first gradients of a process torch counts its devices
    fake_device.register()


@pytest.fixture
def device() -> Iterator[str]:
    """A device other than the CPU, by its name. Modules that move there keep weights they share."""
    from torch.__future__ import set_swap_module_params_on_conversion

    set_swap_module_params_on_conversion(True)
    yield fake_device.NAME
    set_swap_module_params_on_conversion(False)
