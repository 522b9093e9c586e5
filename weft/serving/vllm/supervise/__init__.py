"""Supervision of vLLM processes: start, health, restart, lease, log, stop."""
