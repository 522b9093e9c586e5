"""Model servers, for the command line: see `weft.serving.vllm`."""

from weft.serving.vllm.detached import Terms
from weft.serving.vllm.entry import Entry
from weft.serving.vllm.launch import Launch
from weft.serving.vllm.serve import launches, serve, serve_detached
from weft.serving.vllm.spec import ServeSpec
from weft.serving.vllm.stopping import chosen, servings, stop

__all__ = [
    "Entry",
    "Launch",
    "ServeSpec",
    "Terms",
    "chosen",
    "launches",
    "serve",
    "serve_detached",
    "servings",
    "stop",
]
