"""How one model is cut over devices, and what forbids a cut. Knows no device and no time."""

from __future__ import annotations

from dataclasses import dataclass

from weft.serving.plan.architecture import Architecture
from weft.serving.plan.matrix import Matrix
from weft.serving.plan.quantization import Quantization


@dataclass(frozen=True, slots=True)
class Layout:
    """Ranks of tensor, pipeline and data parallelism.

    spread     whole experts are dealt out over all tp x dp ranks of a stage (expert parallel);
               otherwise every expert is sliced over the tp ranks like an MLP
    """

    tp: int = 1
    pp: int = 1
    dp: int = 1
    spread: bool = False

    @property
    def ranks(self) -> int:
        """Devices that the layout needs."""
        return self.tp * self.pp * self.dp

    @property
    def expert_ranks(self) -> int:
        """Ranks that share one layer's experts."""
        return self.tp * self.dp if self.spread else self.tp

    def share(self, model: Architecture, matrix: Matrix) -> float:
        """The part of `matrix` that one rank holds: 1 where every rank has it whole."""
        match matrix.cut:
            case "whole":
                return 1.0
            case "kv_heads":
                return max(1.0, model.kv_heads / self.tp) / model.kv_heads
            case "experts":
                return 1 / self.expert_ranks
            case "heads" | "width":
                return 1 / self.tp

    def stages(self, layers: int) -> tuple[range, ...]:
        """The layers of each pipeline stage, divided as vLLM does (`get_pp_indices`).

        What does not divide goes one each to the stages before the last, from the back.
        """
        sizes = [layers // self.pp] * self.pp
        for back in range(2, layers % self.pp + 2):
            sizes[-back] += 1
        ends = [sum(sizes[: n + 1]) for n in range(self.pp)]
        return tuple(range(end - size, end) for end, size in zip(ends, sizes, strict=True))

    def objection(self, model: Architecture, scheme: Quantization) -> str | None:
        """Why vLLM would refuse this cut of `model`; None if it would not."""
        if model.heads % self.tp:
            return f"{model.heads} attention heads do not divide by tp {self.tp}"
        if model.latent is None and max(model.kv_heads, self.tp) % min(model.kv_heads, self.tp):
            return f"{model.kv_heads} key/value heads do not fit tp {self.tp}"
        if model.layers < self.pp:
            return f"{model.layers} layers are fewer than pp {self.pp}"
        if self.spread and model.experts is None:
            return "there are no experts to spread"
        if self.spread and model.experts and model.experts.number % self.expert_ranks:
            return f"{model.experts.number} experts do not divide by {self.expert_ranks} ranks"
        return self._width_objection(model, scheme)

    def _width_objection(self, model: Architecture, scheme: Quantization) -> str | None:
        """Slices of an MLP must be whole, and whole groups or blocks where those share a scale."""
        widths = {"MLP": model.mlp_width} if len(model.dense_layers) or not model.experts else {}
        if model.experts and not self.spread:
            widths["expert"] = model.experts.width
        unit = scheme.group or (model.weight_block if scheme.name == model.checkpoint else None)
        for what, width in widths.items():
            if width % self.tp:
                return f"the {what} width {width} does not divide by tp {self.tp}"
            if unit and width // self.tp % unit:
                return (
                    f"{width // self.tp} of {what} width {width} at tp {self.tp} is not a"
                    f" multiple of the {unit} weights that share a {scheme.name} scale"
                )
        return None

    def __str__(self) -> str:
        """`tp 4 x pp 1 x dp 2`, with `, experts spread` where they are."""
        cut = f"tp {self.tp} x pp {self.pp} x dp {self.dp}"
        return cut + (", experts spread" if self.spread else "")
