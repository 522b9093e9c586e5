"""One process for each system and round: loads, measures, prints one line of JSON."""
