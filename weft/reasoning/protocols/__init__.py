"""Protocols in which a model forks its own thinking, each as a grammar of the runtime."""
