"""Threads of a thought over token ids: their records, contexts and marks."""
