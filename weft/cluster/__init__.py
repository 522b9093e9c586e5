"""Tools on a Ray cluster: placement and lifetime. Importing it imports no Ray."""
