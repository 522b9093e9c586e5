"""Circuit breakers: calls of what keeps failing are refused, until it has recovered."""

from weft.durability.breakers.circuit import BreakerChange, CircuitBreaker
from weft.durability.breakers.guard import (
    BreakerGuard,
    Guarded,
    clock_of,
    process_breaker,
    verdict_of,
)
from weft.durability.breakers.wrappers import BreakerTools, breaker_client

__all__ = [
    "BreakerChange",
    "BreakerGuard",
    "BreakerTools",
    "CircuitBreaker",
    "Guarded",
    "breaker_client",
    "clock_of",
    "process_breaker",
    "verdict_of",
]
