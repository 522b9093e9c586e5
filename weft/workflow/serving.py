"""Model servers, for the command line: see `weft.serving.vllm`."""

from weft.serving.vllm.launch.command import Launch
from weft.serving.vllm.launch.decoders import parse_decode
from weft.serving.vllm.launch.spec import Device, Dtype, ServeSpec
from weft.serving.vllm.serve import (
    across_machines,
    chosen,
    launches,
    serve,
    serve_detached,
    servings,
    stop,
)
from weft.serving.vllm.supervise.detached import SupervisionTerms
from weft.serving.vllm.supervise.registry import ServingEntry
from weft.workflow.document.spec.fields import parse_size

__all__ = [
    "Device",
    "Dtype",
    "Launch",
    "ServeSpec",
    "ServingEntry",
    "SupervisionTerms",
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
