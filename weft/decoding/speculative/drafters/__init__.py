"""Who guesses: each file one published way."""
