"""The real models that plans are asked of: in this process, and on a vLLM server of our own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Final

from weft.core.ports import ModelClient
from weft.serving.local import LocalModel, LocalOptions
from weft.serving.vllm.client.model import VllmModel
from weft.serving.vllm.launch.spec import ServeSpec

NAME: Final = "smollm2-135m-instruct"
CONTEXT: Final = 4096
AT_ONCE: Final = 16


@dataclass(frozen=True, slots=True)
class Served:
    """`words`: the model, what decodes it and in which numbers, for people.

    `few` and `many` questions of each benchmark are asked at quick and at full effort.
    """

    name: str
    words: str
    make: Callable[[], ModelClient]
    few: int
    many: int


def _local() -> ModelClient:
    return LocalModel(NAME, LocalOptions(dtype="float32", max_batch=AT_ONCE))


def _vllm() -> ModelClient:
    return VllmModel(ServeSpec(NAME, dtype="float32", max_context_tokens=CONTEXT, eager=True))


MODELS: Final = (
    Served(
        "vllm",
        f"{NAME}, float32, vLLM, autoregressive, greedy",
        _vllm,
        few=6,
        many=200,
    ),
    Served(
        "local",
        f"{NAME}, float32, weft's local engine on torch, autoregressive, greedy",
        _local,
        few=3,
        many=24,
    ),
)


@asynccontextmanager
async def opened(served: Served) -> AsyncIterator[ModelClient]:
    """The model, ready; ended afterwards. Raises: `ModelError`, `ServeError`."""
    async with aclosing(served.make()) as model:
        if isinstance(model, VllmModel):
            await model.start()
        await model.capabilities()
        yield model
