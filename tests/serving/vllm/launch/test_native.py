"""What the installed vLLM can do, read from its source; a source of another shape says nothing."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

from weft.serving.vllm.launch import engine as module
from weft.serving.vllm.launch.decoders import METHODS, OURS
from weft.serving.vllm.launch.engine import NativeOptions, native, read

SOURCE = """
Types = Literal["mtp", "deep_mtp"]
SpeculativeMethod = Literal["ngram", "custom_class", Types]
Looping = Literal["x", Looping]
class SpeculativeConfig:
    method: SpeculativeMethod | None = None
    num_speculative_tokens: int = 1
"""


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    native.cache_clear()
    yield
    native.cache_clear()


def test_methods_and_options_are_read_from_the_source() -> None:
    found = read(SOURCE)
    assert found.methods == {"ngram", "custom_class", "mtp", "deep_mtp"}
    assert found.options == {"method", "num_speculative_tokens"}


@pytest.mark.parametrize(
    "source", ["", "x = (", "SpeculativeMethod = Literal[SpeculativeMethod]", "\0", "a = 1\n" * 9]
)
def test_another_source_is_refused(source: str) -> None:
    with pytest.raises(ValueError, match=r"vLLM's speculative config|no Python"):
        read(source)


def test_where_nothing_is_installed_or_readable_nothing_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "find_spec", lambda _: None)
    assert native() is None
    native.cache_clear()
    here = SimpleNamespace(submodule_search_locations=[str(tmp_path)])
    monkeypatch.setattr(module, "find_spec", lambda _: here)
    assert native() is None
    native.cache_clear()
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "speculative.py").write_text(SOURCE)
    assert native() == read(SOURCE)


@pytest.mark.skipif(find_spec("vllm") is None, reason="no vLLM is installed")
def test_the_installed_vllm_has_all_that_weft_offers() -> None:
    found = native()
    assert isinstance(found, NativeOptions)
    assert METHODS.keys() - {OURS} <= found.methods
    options = {name for method in METHODS.values() for name in method.options}
    assert options - set(METHODS[OURS].options) <= found.options
