"""The small model of list operations, trained from nothing: full, block-causal and causal."""
