"""Token algorithms over the logits and the attention of a model. Knows no servers and no text."""
