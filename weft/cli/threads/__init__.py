"""The threads of a thought: live rows, a summary, a file."""
