"""Learn2PD: a filter that tells which predictions are final (Bao et al., arXiv 2509.25188)."""
