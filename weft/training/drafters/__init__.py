"""Training of drafters on texts that the target writes itself, on tokens and hidden states."""
