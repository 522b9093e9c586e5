"""Which part of an answer is written when."""
