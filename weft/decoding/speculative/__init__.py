"""Speculative decoding: drafts as trees, verified in one pass, and accepted by lossless rules.

Follows Leviathan et al. (arXiv 2211.17192), Chen et al. (arXiv 2302.01318), SpecInfer (arXiv
2305.09781) and Sequoia (arXiv 2402.12374).
"""
