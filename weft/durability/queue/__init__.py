"""The queue of runs in a SQLite journal, and what both kinds of queues share."""
