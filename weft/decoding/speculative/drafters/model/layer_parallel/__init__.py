"""Layer-parallel drafting: neighbouring attentions of a draft model read one input in parallel.

EasySpec (arXiv 2502.02493), over processes with torch.distributed. Drafts only approximate the
draft model; the target decides.
"""
