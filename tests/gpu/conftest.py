from __future__ import annotations

from importlib.util import find_spec

import pytest

from tests.serving.local.conftest import play, tiny_path, vocabulary

__all__ = ["cuda", "play", "tiny_path", "vocabulary"]

if find_spec("torch") is None:  # without the `local` extra there is nothing to test
    collect_ignore_glob = ["test_*.py"]
else:
    from tests import fake_device

    fake_device.register()  # before the first gradients of the process


@pytest.fixture
def cuda() -> str:
    """The GPU by its name; tests that ask for it are skipped without one."""
    import torch

    if not torch.cuda.is_available():
        pytest.skip("this torch sees no GPU")
    return "cuda"
