"""Token algorithms over the logits and the attention of a model, without servers or text."""
