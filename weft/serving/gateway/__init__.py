"""Serves model clients behind an OpenAI-compatible API. Imports nothing of workflows.

Gateway(models, options)    binds, serves and drains
GatewayOptions(...)         address, keys, limits
GatewayKeys                 the keys that clients must send
ServedModel(name, client)   one model
"""

from weft.serving.gateway.completion import ServedModel
from weft.serving.gateway.exchange import GatewayExchange, Report
from weft.serving.gateway.gateway import Gateway
from weft.serving.gateway.options import GatewayKeys, GatewayOptions

__all__ = [
    "Gateway",
    "GatewayExchange",
    "GatewayKeys",
    "GatewayOptions",
    "Report",
    "ServedModel",
]
