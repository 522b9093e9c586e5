"""Requests and tokens per minute, shared by runs and processes."""

from weft.durability.rates.clients import limited_client
from weft.durability.rates.limiter import RateLimiter, process_rates
from weft.durability.rates.window import WINDOW_S, RateLimits

__all__ = ["WINDOW_S", "RateLimiter", "RateLimits", "limited_client", "process_rates"]
