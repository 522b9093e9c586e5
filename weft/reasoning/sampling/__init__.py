"""Independent samples: how many, in which waves, and which are worth going on with.

Samplers decide and do nothing else; the same objects run live and over recorded samples.
"""
