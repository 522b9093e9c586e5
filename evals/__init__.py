"""Benchmarks and their tasks. May import anything but `weft.cli`; imported by nothing in weft."""
