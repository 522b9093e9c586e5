"""Adapters: trained changes of a base model, merged into its weights when it is loaded."""
