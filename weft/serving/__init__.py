"""Models: clients of servers, models in this process, weights. Only it imports torch and HTTP."""
