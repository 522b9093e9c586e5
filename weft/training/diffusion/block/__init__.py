"""A causal chat model is turned into one that fills blocks, on transformers' own model classes."""
