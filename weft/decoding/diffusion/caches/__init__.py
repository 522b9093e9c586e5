"""Cache policies: which slots' keys are computed again in a pass, and which are trusted."""
