from __future__ import annotations

from importlib.util import find_spec

from tests.serving.local.conftest import tiny_path

__all__ = ["tiny_path"]

if find_spec("torch") is None:  # without the `local` extra there is nothing to test
    collect_ignore_glob = ["test_*.py"]
