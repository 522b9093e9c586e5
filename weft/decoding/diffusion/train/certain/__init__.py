"""dParallel: a model learns to be certain of many slots at once (arXiv 2509.26488)."""
