"""How much to draft: by what a pass over more tokens costs, and by what was accepted so far."""
