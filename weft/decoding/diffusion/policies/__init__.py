"""Rules that decide which slots are written after a look. Each knows nothing of the others."""
