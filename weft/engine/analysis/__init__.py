"""What the events of a run tell: times, critical path, speed-up advice."""
