"""Telemetry of runs: OpenTelemetry spans, Prometheus metrics. Only listens to events."""
