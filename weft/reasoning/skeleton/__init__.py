"""Skeleton-of-Thought: a skeleton of points, each point written out beside the others."""
