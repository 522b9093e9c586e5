"""Drafters trained for one target: heads on its states, and auxiliary rows of its passes."""
