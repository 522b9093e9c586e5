"""What is trained for a target: small modules on its states. Know no drafting."""
