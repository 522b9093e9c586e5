"""What runs tell the outside: OpenTelemetry spans, Prometheus metrics. They only listen."""
