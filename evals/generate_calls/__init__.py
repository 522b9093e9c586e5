"""What the gates of `weft generate-calls` catch, what they refuse wrongly, and how fast it is."""
