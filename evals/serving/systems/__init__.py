"""The systems that are compared, by name. Importing this loads none of them."""
