"""Several tokens a step, the same text: drafts as trees, and rules that accept them losslessly.

Follows Leviathan et al. (arXiv 2211.17192), Chen et al. (arXiv 2302.01318), SpecInfer (arXiv
2305.09781) and Sequoia (arXiv 2402.12374). Knows no model: distributions come in, tokens go out.
"""
