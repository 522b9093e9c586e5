"""What stands between a model and a canvas: guidance of logits, and verifiers of proposals."""
