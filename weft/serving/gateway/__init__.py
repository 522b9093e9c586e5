"""Serves model clients behind an OpenAI-compatible API. Knows no workflows.

Gateway(models, options)   binds, serves and drains
GatewayOptions(...)        address, keys, limits
Keys                       what clients have to show
Served(name, client)       one model
"""

from weft.serving.gateway.exchange import Exchange, Report
from weft.serving.gateway.gateway import Gateway
from weft.serving.gateway.keys import Keys
from weft.serving.gateway.options import GatewayOptions
from weft.serving.gateway.served import Served

__all__ = ["Exchange", "Gateway", "GatewayOptions", "Keys", "Report", "Served"]
