"""Twelve jobs as programs of weft and of its peers: lines, model calls, time, the same result."""
