"""How well `weft plan-serve` predicts: rankings of vLLM configurations on this CPU, and memory."""
