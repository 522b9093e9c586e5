from __future__ import annotations

from importlib.util import find_spec

from tests.serving.local.conftest import play, smollm2, smollm2_network, tiny_path, vocabulary

__all__ = ["play", "smollm2", "smollm2_network", "tiny_path", "vocabulary"]

if find_spec("torch") is None:  # without the `local` extra there is nothing to test
    collect_ignore_glob = ["test_*.py"]
