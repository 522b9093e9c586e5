"""Independent samples: their number, waves and cancellation.

Samplers only decide; the same objects run live and over recorded samples.
"""
