"""ParScale (arXiv 2505.10475): a model reads a text in several streams, and mixes their states.

Each stream has learned keys and values before the text, in every layer. It buys quality with
arithmetic, not speed; the streams are rows of one pass, so drafts are read in all of them.
"""
