"""Presets with caches: on a model that is never wrong they write what no cache writes, for less."""

from __future__ import annotations

import pytest

from tests.decoding.diffusion.lists import answered
from weft.core.errors import SpecError
from weft.decoding.diffusion.catalogue import decoder_config
from weft.decoding.diffusion.oracle.adapter import OracleAdapter
from weft.decoding.diffusion.preset import Options

CACHED = ("fastdllm_prefix", "fastdllm_dual", "freecache", "delayed", "interval", "vicinity")
ORACLE, BLOCKS = OracleAdapter(), OracleAdapter(block=4)


@pytest.mark.parametrize("name", CACHED)
@pytest.mark.parametrize("rule", [{}, {"factor": 1.0}, {"threshold": 0.6}])
def test_only_what_is_read_differs(name: str, rule: Options) -> None:
    base = decoder_config("factor" if "factor" in rule else "threshold", ORACLE.traits, rule)
    plugs = decoder_config(name, ORACLE.traits, rule)
    for one, other in zip(
        answered("parity", 5, 3, base), answered("parity", 5, 3, plugs), strict=True
    ):
        assert one.row.kept.tolist() == other.row.kept.tolist()
        assert one.row.counters.order == other.row.counters.order
        assert other.row.counters.tokens <= one.row.counters.tokens


def tokens(name: str, **options: str | float) -> int:
    """Read in all, of one text in blocks of 2 that is written slot by slot."""
    plugs = decoder_config(name, ORACLE.traits, {"threshold": 1.0, "block": 2, **options})
    return answered("shuffle", 6, 1, plugs)[0].row.counters.tokens


def test_options_reach_the_caches() -> None:
    whole = tokens("threshold")
    prefix, dual = tokens("fastdllm_prefix"), tokens("fastdllm_dual")
    assert dual < prefix < whole
    assert tokens("fastdllm_prefix", refresh=1) == tokens("fastdllm_dual", refresh=1) == whole
    assert tokens("delayed", refresh=1) == whole > tokens("delayed") >= tokens("delayed", refresh=0)
    assert tokens("freecache", ahead=1) < tokens("freecache") < tokens("freecache", behind=4)
    assert tokens("interval", prompt=1) == whole
    assert tokens("interval", share=0) < tokens("interval", share=1) < whole
    assert tokens("interval", share=0) < tokens("interval", answer=1, share=0)
    assert tokens("vicinity", slots=0, warm_up=1) < tokens("vicinity", slots=2, warm_up=1) < whole
    assert tokens("vicinity", slots=0, warm_up=3) > tokens("vicinity", slots=0, warm_up=1)
    assert tokens("vicinity", refresh=1) == whole


def test_blocks_are_stored_apart_or_with_the_next() -> None:
    def passes(**options: str | float) -> dict[str, int]:
        plugs = decoder_config("sdar", BLOCKS.traits, options)
        return dict(answered("shuffle", 6, 1, plugs, room=2, adapter=BLOCKS)[0].row.counters.passes)

    apart, joined = passes(), passes(store="joined")
    assert apart.pop("persist") > 0
    assert apart == joined
    assert passes(threshold=0.0, store="joined")["denoise"] == 1
    fast = decoder_config("fastdllm_v2", BLOCKS.traits, {"block": 2})
    assert answered("sort", 6, 1, fast, room=2, adapter=BLOCKS)[0].valid
    split = decoder_config("sdar", BLOCKS.traits, {"steps": 1})
    assert answered("shuffle", 6, 1, split, room=2, adapter=BLOCKS)[0].row.counters.forwards < 8


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("fastdllm_prefix", {"refresh": -1}),
        ("fastdllm_dual", {"threshold": 2}),
        ("freecache", {"freeze": "now"}),
        ("freecache", {"behind": -1}),
        ("delayed", {"refresh": 0.5}),
        ("interval", {"answer": 0}),
        ("interval", {"share": 2}),
        ("vicinity", {"warm_up": 0}),
        ("sdar", {"store": "never"}),
        ("fastdllm_v2", {"inside": "out"}),
        ("fastdllm_v2", {"refresh": 1}),
    ],
)
def test_options_that_cannot_be_are_refused(name: str, options: Options) -> None:
    with pytest.raises(SpecError):
        decoder_config(name, ORACLE.traits, options)
    with pytest.raises(SpecError, match="do not fit"):
        decoder_config(name, BLOCKS.traits, {"block": 3})
