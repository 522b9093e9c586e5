"""What each way to decode several tokens a step is worth, on Spec-Bench and on agents' text."""
