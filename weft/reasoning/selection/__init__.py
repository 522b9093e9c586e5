"""One answer out of many samples: votes, scorers, tournaments, a thread that reads them all."""
