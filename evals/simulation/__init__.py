"""Simulated runs beside real ones, and a million nodes that nobody ran."""
