"""Programs that nobody trusts: typed outcomes, hard limits, refusal where they cannot hold."""
