"""The conversation of an agent loop with its model: requests, reply formats, parsing."""
