"""A start, as its log tells it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from weft.serving.vllm.supervise.log import STAGES, StartupLog

# From real starts of vLLM 0.32 on a CPU: one server; then two data-parallel ranks, one lagging.
ONE = """\
Triton is installed, but doesn't include CPU backend. Disabling Triton.
(APIServer pid=4718) INFO 11-21 11:47:28 [api_utils.py:347]  ▄▄ ▄█ █     █     █ ▀▄▀ █  version 0.32.0
(APIServer pid=4718) INFO 11-21 11:47:36 [model.py:733] Resolved architecture: LlamaForCausalLM
(APIServer pid=4718) INFO 11-21 11:47:36 [model.py:2152] Using max model len 4096
(EngineCore pid=4740) INFO 11-21 11:47:43 [core.py:133] Initializing a V1 LLM engine (v0.32.0) with config: model='/m'
(Worker pid=4749) INFO 11-21 11:47:50 [cpu_model_runner.py:68] Starting to load model /m...
Loading safetensors checkpoint shards:   0% Completed | 0/3 [00:00<?, ?it/s]
\rLoading safetensors checkpoint shards:  33% Completed | 1/3 [00:00<?]\rLoading safetensors checkpoint shards:  67% Completed | 2/3 [00:00<?]
Loading safetensors checkpoint shards: 100% Completed | 3/3 [00:00<00:00,  6.91it/s]
(Worker pid=4749) INFO 11-21 11:47:50 [default_loader.py:501] Loading weights took 0.16 seconds
(EngineCore pid=4740) INFO 11-21 11:47:51 [kv_cache_utils.py:2327] CPU KV cache size: 46,592 tokens, Maximum concurrency for 4,096 tokens per request: 11.38x
(APIServer pid=4718) INFO 11-21 11:47:52 [entry.py:140] Starting vLLM server on http://127.0.0.1:8123
INFO:     Application startup complete.
INFO:     127.0.0.1:41008 - "GET /health HTTP/1.1" 200 OK
"""  # noqa: E501 - a log is as wide as it is
TWO = """\
Loading safetensors checkpoint shards: 100% Completed | 1/1 [00:00<00:00,  5.93it/s]
(EngineCore_DP0 pid=21169) INFO 11-21 12:28:41 [kv_cache_utils.py:2327] CPU KV cache size: 11,648 tokens, Maximum concurrency for 2,048 tokens per request: 5.69x
(Worker pid=21456) INFO 11-21 12:28:42 [cpu_model_runner.py:68] Starting to load model /m...
Loading safetensors checkpoint shards:   0% Completed | 0/1 [00:00<?, ?it/s]
(EngineCore_DP1 pid=21170) INFO 11-21 12:28:43 [kv_cache_utils.py:2327] CPU KV cache size: 9,600 tokens, Maximum concurrency for 2,048 tokens per request: 4.69x
"""  # noqa: E501


def told(startup: StartupLog, log: str) -> list[str]:
    return [str(stage) for line in log.split("\n") if (stage := startup.feed(line))]


def test_a_start_is_told_in_stages() -> None:
    startup = StartupLog()
    assert told(startup, ONE.replace("\r", "\x1b[A\r")) == [
        "loading the engine",
        "reading the model",
        "starting workers",
        "loading weights",
        "loading weights: 0 %",
        "loading weights: 67 %",
        "loading weights: 100 %",
        "KV cache: 46,592 tokens (11 requests of 4,096)",
        "starting the server",
        "ready",
    ]
    assert startup.loaded


def test_ranks_that_lag_are_silent() -> None:
    startup = StartupLog()
    assert told(startup, TWO) == [
        "loading weights: 100 %",
        "KV cache: 11,648 tokens (5 requests of 2,048)",
    ]
    assert not startup.loaded


LINES = st.one_of(st.text(max_size=60), st.sampled_from((ONE + TWO).split("\n")))


@given(st.lists(LINES, max_size=30))
def test_whatever_the_log_says_a_start_never_goes_back(lines: list[str]) -> None:
    startup = StartupLog()
    stages = [stage for line in lines if (stage := startup.feed(line))]
    places = [STAGES.index(stage.name) for stage in stages]
    assert places == sorted(places)
    assert stages[-1:] == ([startup.stage] if startup.stage else [])
