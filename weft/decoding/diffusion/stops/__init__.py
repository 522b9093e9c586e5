"""When a text has ended before its canvas is full."""
