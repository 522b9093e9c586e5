"""Searches for better programs on planted optima: weft's, and the rules of published optimisers."""
