"""Attention of several writers over one another's keys, and prompts whose parts lie side by side.

Hogwild! Inference (arXiv 2504.06261), Group Think (arXiv 2505.11107), and the positions and
visibility of Multiverse (arXiv 2506.09991) and ParaThinker (arXiv 2509.04475).
"""
