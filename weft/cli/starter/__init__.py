"""The files that `weft init` writes."""
