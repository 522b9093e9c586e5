"""Drafters trained for one target: heads on its states, and rows that it reads beside a draft."""
