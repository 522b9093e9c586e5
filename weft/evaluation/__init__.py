"""Data sets, metrics and evaluation runs, and the statistics that compare them."""
