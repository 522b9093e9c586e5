"""The kinds of model clients that a workflow can declare, one module each: `check`, then `make`."""
