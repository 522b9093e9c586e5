"""Model servers, for the command line: see `weft.serving.vllm`."""

from weft.serving.vllm.decoder import parse_decode
from weft.serving.vllm.detached import Terms
from weft.serving.vllm.entry import Entry
from weft.serving.vllm.launch import Launch
from weft.serving.vllm.serve import across_machines, launches, serve, serve_detached
from weft.serving.vllm.spec import Device, Dtype, ServeSpec
from weft.serving.vllm.stopping import chosen, servings, stop
from weft.workflow.document.quantity import parse_size

__all__ = [
    "Device",
    "Dtype",
    "Entry",
    "Launch",
    "ServeSpec",
    "Terms",
    "across_machines",
    "chosen",
    "launches",
    "parse_decode",
    "parse_size",
    "serve",
    "serve_detached",
    "servings",
    "stop",
]
