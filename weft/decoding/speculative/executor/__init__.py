"""Where drafts and passes of the target run: side by side in threads, and when, to be looked at."""
