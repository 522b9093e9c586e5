"""The capabilities of devices, from their makers' data sheets; all figures are dense, not sparse.

`memory_bytes` is what the driver reports, which differs from the advertised figure. `Efficiency` is
the part of the other figures that is reached in practice. `EngineLimits` are vLLM's defaults.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from weft.core.errors import SpecError
from weft.serving.plan.architecture import Compute

_MIB, _GB, _TFLOP = 1 << 20, 1_000_000_000, 1_000_000_000_000


@dataclass(frozen=True, slots=True)
class Efficiency:
    """The share of the data sheet's figures that kernels reach, and fixed costs in seconds.

    For GPUs these are assumptions, rounded down from published kernel measurements:
    cuBLAS reaches 0.7 to 0.8 of dense peak on large bf16 products, FlashAttention-3 reports up to
    0.75 in bf16 on an H100 for long sequences, streaming kernels 0.8 to 0.9 of the bandwidth.

    step_s         scheduling, input preparation and sampling of one forward pass
    layer_s        launches and small kernels of one layer
    sequence_s     host work for each sequence of one forward pass
    """

    products: float = 0.7
    attention: float = 0.5
    memory: float = 0.8
    link: float = 0.75
    step_s: float = 0.5e-3
    layer_s: float = 8e-6
    sequence_s: float = 2e-6


@dataclass(frozen=True, slots=True)
class Device:
    """One accelerator. Rates in operations or bytes per second, link rates in one direction.

    flops              dense rate by number format; a format that is missing is not supported
    link_bytes_s       between devices of one machine
    hop_s              delay of one message over that link
    per_node           devices in one machine
    reserved_bytes     used by the driver, libraries and captured graphs, on every rank
    """

    name: str
    title: str
    flops: Mapping[Compute, float]
    memory_bytes: int
    bandwidth_bytes_s: float
    link_bytes_s: float
    source: str
    hop_s: float = 1.5e-6
    per_node: int = 8
    network_bytes_s: float = 50 * _GB  # a 400 Gbit/s adapter for each device
    network_hop_s: float = 10e-6
    reserved_bytes: int = 1536 * _MIB
    efficiency: Efficiency = field(default_factory=Efficiency)


def _gpu(
    name: str,
    title: str,
    bf16: float,
    fp8: float | None,
    mib: int,
    bandwidth_gb_s: float,
    link_gb_s: float,
    source: str,
    *,
    hop_s: float = 1.5e-6,
) -> Device:
    flops: dict[Compute, float] = {"bf16": bf16 * _TFLOP}
    if fp8 is not None:
        flops["fp8"] = fp8 * _TFLOP
    return Device(
        name, title, flops, mib * _MIB, bandwidth_gb_s * _GB, link_gb_s * _GB, source, hop_s=hop_s
    )


_PCIE_HOP_S = 5e-6

DEVICES: Mapping[str, Device] = {
    device.name: device
    for device in (
        _gpu("h100", "H100 SXM 80 GB", 989.4, 1978.9, 81_559, 3_350, 450,
             "NVIDIA H100 data sheet (halved: it states sparse rates); NVLink 900 GB/s both ways"),
        _gpu("h100-pcie", "H100 PCIe 80 GB", 756, 1513, 81_559, 2_000, 64,
             "NVIDIA H100 data sheet (halved); PCIe 5.0 x16, 128 GB/s both ways",
             hop_s=_PCIE_HOP_S),
        _gpu("h200", "H200 SXM 141 GB", 989.4, 1978.9, 143_771, 4_800, 450,
             "NVIDIA H200 data sheet (halved); NVLink 900 GB/s both ways"),
        _gpu("b200", "B200 SXM 180 GB", 2_250, 4_500, 183_359, 7_700, 900,
             "NVIDIA HGX B200 data sheet (dense rates); NVLink 1.8 TB/s both ways"),
        _gpu("a100-40", "A100 SXM 40 GB", 312, None, 40_960, 1_555, 300,
             "NVIDIA A100 data sheet; NVLink 600 GB/s both ways"),
        _gpu("a100-80", "A100 SXM 80 GB", 312, None, 81_920, 2_039, 300,
             "NVIDIA A100 data sheet; NVLink 600 GB/s both ways"),
        _gpu("l40s", "L40S 48 GB", 362, 733, 46_068, 864, 32,
             "NVIDIA L40S data sheet (dense rates); PCIe 4.0 x16, 64 GB/s both ways",
             hop_s=_PCIE_HOP_S),
        _gpu("l4", "L4 24 GB", 121, 242.5, 23_034, 300, 32,
             "NVIDIA L4 data sheet (halved); PCIe 4.0 x16, 64 GB/s both ways", hop_s=_PCIE_HOP_S),
        _gpu("a10g", "A10G 24 GB", 70, None, 23_028, 600, 32,
             "NVIDIA A10G data sheet for AWS G5 (dense rate); PCIe 4.0 x16", hop_s=_PCIE_HOP_S),
        _gpu("rtx4090", "GeForce RTX 4090 24 GB", 165.2, 330.3, 24_564, 1_008, 32,
             "NVIDIA Ada white paper (dense, fp32 sums); PCIe 4.0 x16", hop_s=_PCIE_HOP_S),
        _gpu("mi300x", "Instinct MI300X 192 GB", 1_307.4, 2_614.9, 196_592, 5_300, 448,
             "AMD MI300X data sheet; 7 Infinity Fabric links of 128 GB/s both ways"),
    )
}  # fmt: skip
_ALIASES = {"h100-sxm": "h100", "a100": "a100-80", "4090": "rtx4090"}
_REQUEST = re.compile(r"([a-z0-9-]+)(?::([1-9][0-9]{0,3}))?")
_MAX_DEVICES = 64


def find_devices(text: str) -> tuple[Device, int]:
    """The device and count of a text such as `h200:8`; without a number, one device.

    Raises: `SpecError` listing the devices in the table.
    """
    match = _REQUEST.fullmatch(text.strip().lower())
    name = _ALIASES.get(match[1], match[1]) if match else ""
    if match is None or name not in DEVICES:
        raise SpecError(
            f"no GPU {text!r:.60} in the table",
            hint=f"write NAME:COUNT with one of {', '.join(DEVICES)}",
        )
    count = int(match[2] or 1)
    if count > _MAX_DEVICES:
        raise SpecError(
            f"{count} devices are more than the {_MAX_DEVICES} that are planned together",
            hint="plan for fewer and for their part of the traffic; replicas add up",
        )
    return DEVICES[name], count


_GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """The limits of one engine.

    max_seqs               most sequences in one forward pass
    max_batched_tokens     most tokens in one forward pass: long prompts are cut into chunks of it
    block_tokens           tokens of one block of the KV cache
    memory_share           part of a device's memory that the engine takes: vLLM's default
                           `gpu_memory_utilization` (0.92 in vLLM 0.32)
    """

    max_seqs: int = 256
    max_batched_tokens: int = 8_192
    block_tokens: int = 16
    memory_share: float = 0.92

    def __post_init__(self) -> None:
        for name in ("max_seqs", "max_batched_tokens", "block_tokens"):
            if getattr(self, name) < 1:
                raise SpecError(f"`{name}` is {getattr(self, name)}", hint="it counts from 1")
        if self.max_batched_tokens < self.max_seqs:
            raise SpecError(
                f"{self.max_seqs} sequences do not fit {self.max_batched_tokens} tokens a pass",
                hint="every sequence needs one token of the pass",
            )
        if not 0.0 < self.memory_share <= 1.0:
            raise SpecError(f"`memory_share` is {self.memory_share}, not a part of 1")


def default_limits(device: Device) -> EngineLimits:
    """The defaults of vLLM 0.32 on a device of this size."""
    if device.memory_bytes >= 160 * _GIB:
        return EngineLimits(max_seqs=1_024, max_batched_tokens=16_384)
    if device.memory_bytes >= 70 * _GIB and not device.name.startswith("a100"):
        return EngineLimits(max_seqs=1_024, max_batched_tokens=8_192)
    return EngineLimits(max_seqs=256, max_batched_tokens=2_048)
