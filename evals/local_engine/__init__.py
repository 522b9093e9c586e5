"""The embedded model beside llama.cpp and vLLM on the same weights, and what fewer bits cost."""
