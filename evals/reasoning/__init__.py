"""What parallel reasoning is worth: votes, protocols, equal budgets, speed, a model of our own."""
