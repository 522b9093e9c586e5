"""Recorded runs: resumed, replayed, forked, compared, exported."""
