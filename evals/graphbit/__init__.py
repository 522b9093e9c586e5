"""GraphBit's six scenarios on one local server with a fixed latency, and how prompts grow."""
