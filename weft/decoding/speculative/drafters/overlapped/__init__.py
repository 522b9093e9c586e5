"""Drafts that go on while the target verifies: PEARL (arXiv 2408.11850), continuously.

A draft model works in a thread of its own from the assumption that all that is being verified will
be accepted. What turns out otherwise is thrown away, and counted.
"""
