from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

if find_spec("torch") is None:  # without the `local` extra there is nothing to test
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session")
def chat_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny chat model, with a special token that nothing uses."""
    from tests.serving.local.tiny import make_model, make_tokenizer

    folder = tmp_path_factory.mktemp("chat") / "tiny-chat"
    tokenizer = make_tokenizer()
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|reserved|>"]})
    tokenizer.save_pretrained(folder)
    make_model(len(tokenizer)).save_pretrained(folder)
    return folder
