"""Abstraction-of-Thought prompting: first what to do in general, then what it comes to here."""
