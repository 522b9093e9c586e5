"""YAML and Python programs, and how they become graphs; picks models, tools and stores."""
