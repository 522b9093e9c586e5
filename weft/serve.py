"""Models and servers, for programs that talk to them directly: `from weft.serve import LocalModel`.

Requests and answers, clients of servers and models in this process, gateways and pages, launch
commands. Names are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.core.lazy import lazy_names

if TYPE_CHECKING:
    from weft.cluster.replicas import RayReplicas
    from weft.core.ports.metering import complete
    from weft.core.ports.model import (
        Capabilities,
        ConcurrentAttention,
        ModelClient,
        ModelRequest,
        Placed,
        ReasoningDelta,
        Sampling,
        TextDelta,
        ToolCallDelta,
    )
    from weft.core.values import Completion, Lossless, Lossy, Message, Usage
    from weft.serving.fleet import (
        DnsEndpoints,
        EndpointSource,
        Fleet,
        FleetOptions,
        FollowingFleet,
        ReplicaPool,
        ScalingOptions,
        autoscale,
    )
    from weft.serving.gateway import Gateway
    from weft.serving.local import LocalModel, LocalOptions
    from weft.serving.openai import OpenAIModel
    from weft.serving.openai.embeddings import OpenAIEmbeddings
    from weft.serving.providers.anthropic.model import AnthropicModel
    from weft.serving.providers.gemini.model import GeminiModel
    from weft.serving.providers.options import ProviderOptions
    from weft.serving.vllm.launch.engine import installed_engine
    from weft.serving.vllm.launch.ray import ray_commands
    from weft.serving.vllm.launch.spec import ServeSpec
    from weft.workflow.apps.flow_model import FlowModel
    from weft.workflow.apps.gateway import WorkflowGateway
    from weft.workflow.apps.ui import RunsPage

_NAMES = {
    "weft.cluster.replicas": "RayReplicas",
    "weft.core.ports.metering": "complete",
    "weft.core.ports.model": "Capabilities ConcurrentAttention ModelClient ModelRequest Placed "
    "ReasoningDelta Sampling TextDelta ToolCallDelta",
    "weft.core.values": "Completion Lossless Lossy Message Usage",
    "weft.serving.fleet": "DnsEndpoints EndpointSource Fleet FleetOptions FollowingFleet "
    "ReplicaPool ScalingOptions autoscale",
    "weft.serving.gateway": "Gateway",
    "weft.serving.local": "LocalModel LocalOptions",
    "weft.serving.openai": "OpenAIModel",
    "weft.serving.openai.embeddings": "OpenAIEmbeddings",
    "weft.serving.providers.anthropic.model": "AnthropicModel",
    "weft.serving.providers.gemini.model": "GeminiModel",
    "weft.serving.providers.options": "ProviderOptions",
    "weft.serving.vllm.launch.engine": "installed_engine",
    "weft.serving.vllm.launch.ray": "ray_commands",
    "weft.serving.vllm.launch.spec": "ServeSpec",
    "weft.workflow.apps.flow_model": "FlowModel",
    "weft.workflow.apps.gateway": "WorkflowGateway",
    "weft.workflow.apps.ui": "RunsPage",
}
__all__ = [
    "AnthropicModel",
    "Capabilities",
    "Completion",
    "ConcurrentAttention",
    "DnsEndpoints",
    "EndpointSource",
    "Fleet",
    "FleetOptions",
    "FlowModel",
    "FollowingFleet",
    "Gateway",
    "GeminiModel",
    "LocalModel",
    "LocalOptions",
    "Lossless",
    "Lossy",
    "Message",
    "ModelClient",
    "ModelRequest",
    "OpenAIEmbeddings",
    "OpenAIModel",
    "Placed",
    "ProviderOptions",
    "RayReplicas",
    "ReasoningDelta",
    "ReplicaPool",
    "RunsPage",
    "Sampling",
    "ScalingOptions",
    "ServeSpec",
    "TextDelta",
    "ToolCallDelta",
    "Usage",
    "WorkflowGateway",
    "autoscale",
    "complete",
    "installed_engine",
    "ray_commands",
]

__getattr__, __dir__ = lazy_names(__name__, _NAMES)
