"""What decoding took, in counts that are the same on every machine."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Counters:
    """`forwards` of the target, after the prompt; `tokens` that they committed.

    `drafted` nodes were read, `tried` of them looked at, `accepted` kept. `tested[d]` candidates
    stood at depth d + 1 below accepted ones only, and `held[d]` of these steps went on there.
    """

    tokens: int = 0
    forwards: int = 0
    drafted: int = 0
    tried: int = 0
    accepted: int = 0
    tested: list[int] = field(default_factory=list)
    held: list[int] = field(default_factory=list)

    @property
    def tokens_per_forward(self) -> float:
        """1 without drafts."""
        return self.tokens / self.forwards if self.forwards else 0.0

    @property
    def chances(self) -> tuple[float, ...]:
        """By depth: how often a step that drafted there went on, of those that came there."""
        return tuple(h / t if t else 0.0 for h, t in zip(self.held, self.tested, strict=True))

    def step(self, drafted: int, deepest: int, tried: int, accepted: int, tokens: int) -> None:
        """One forward: a draft of `drafted` nodes down to `deepest`, and what came of it."""
        self.forwards += 1
        self.drafted += drafted
        self.tried += tried
        self.accepted += accepted
        self.tokens += tokens
        while len(self.tested) < deepest:
            self.tested.append(0)
            self.held.append(0)
        for depth in range(min(accepted + 1, deepest)):
            self.tested[depth] += 1
            self.held[depth] += depth < accepted
