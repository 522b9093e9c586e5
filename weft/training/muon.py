"""Muon: orthogonalised momentum for matrices, AdamW for other parameters.

K. Jordan and others, "Muon: an optimizer for hidden layers" (2024); updates are scaled to the size
of AdamW's, so that one learning rate serves both (J. Liu and others, arXiv 2502.16982).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Final

import torch

from weft.training.devices import computes_bfloat16

_MOMENTUM: Final = 0.95
_BETAS: Final = (0.9, 0.95)
_NOT_ZERO: Final = 1e-8
_QUINTIC: Final = (3.4445, -4.7750, 2.0315)
"""Coefficients of the iteration that brings all singular values close to one."""
_ROUNDS: Final = 5
_RMS: Final = 0.2
"""The usual size of AdamW's updates, in units of the learning rate."""


class Muon(torch.optim.Optimizer):  # type: ignore[misc]
    """`matrices` [rows, columns] of hidden layers, and `others`; `decay` applies to all."""

    def __init__(
        self,
        matrices: Iterable[torch.nn.Parameter],
        others: Iterable[torch.nn.Parameter],
        rate: float,
        decay: float = 0.0,
    ) -> None:
        groups = [
            {"params": list(matrices), "matrices": True},
            {"params": list(others), "matrices": False},
        ]
        super().__init__([g for g in groups if g["params"]], {"lr": rate, "weight_decay": decay})

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def step(self, _closure: Callable[[], float] | None = None) -> None:
        """One step by the current gradients; no closure is called."""
        for group in self.param_groups:
            learnt = [p for p in group["params"] if p.grad is not None]
            for parameter in learnt:
                parameter.mul_(1.0 - group["lr"] * group["weight_decay"])
            if group["matrices"]:
                self._update_matrices(learnt, group["lr"])
            else:
                for parameter in learnt:
                    self._adapt(parameter, group["lr"])

    def _update_matrices(self, matrices: list[torch.nn.Parameter], rate: float) -> None:
        """Update matrices of equal shapes together, which is faster."""
        by_shape: dict[torch.Size, list[torch.nn.Parameter]] = defaultdict(list)
        for matrix in matrices:
            by_shape[matrix.shape].append(matrix)
        for shape, some in by_shape.items():
            updates = orthogonal(torch.stack([self._with_momentum(matrix) for matrix in some]))
            size = _RMS * max(shape) ** 0.5
            for matrix, update in zip(some, updates, strict=True):
                matrix.add_(update, alpha=-rate * size)

    def _with_momentum(self, matrix: torch.nn.Parameter) -> torch.Tensor:
        """The gradient with Nesterov momentum."""
        assert matrix.grad is not None
        momentum = self.state[matrix].setdefault("momentum", torch.zeros_like(matrix))
        momentum.lerp_(matrix.grad, 1.0 - _MOMENTUM)
        return matrix.grad.lerp(momentum, _MOMENTUM)

    def _adapt(self, parameter: torch.nn.Parameter, rate: float) -> None:
        """AdamW (arXiv 1711.05101)."""
        assert parameter.grad is not None
        state = self.state[parameter]
        if not state:
            state["step"] = torch.zeros(())
            state["mean"] = torch.zeros_like(parameter)
            state["square"] = torch.zeros_like(parameter)
        state["step"] += 1
        steps = float(state["step"])
        state["mean"].lerp_(parameter.grad, 1.0 - _BETAS[0])
        state["square"].lerp_(parameter.grad.square(), 1.0 - _BETAS[1])
        mean = state["mean"] / (1.0 - _BETAS[0] ** steps)
        deviation = (state["square"] / (1.0 - _BETAS[1] ** steps)).sqrt_().add_(_NOT_ZERO)
        parameter.addcdiv_(mean, deviation, value=-rate)


def orthogonal(matrices: torch.Tensor) -> torch.Tensor:
    """[matrices, rows, columns]: approximately U V' of each matrix U S V'.

    In bfloat16 where that is fast: it is precise enough.
    """
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.mT if tall else matrices
    x = x / (x.norm(dim=(1, 2), keepdim=True) + _NOT_ZERO)
    if computes_bfloat16(x.device):
        x = x.bfloat16()
    a, b, c = _QUINTIC
    for _ in range(_ROUNDS):
        square = torch.bmm(x, x.mT)
        square = torch.baddbmm(square, square, square, beta=b, alpha=c)
        x = torch.baddbmm(x, square, x, beta=a)
    return (x.mT if tall else x).to(matrices)
