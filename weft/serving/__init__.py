"""Models: clients of servers, models in this process, weights. Alone in importing torch and HTTP."""
