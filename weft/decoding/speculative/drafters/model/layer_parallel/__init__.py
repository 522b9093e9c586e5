"""Layer-parallel drafting: neighbouring attentions of a draft model read the same and run at once.

EasySpec (arXiv 2502.02493), over processes with torch.distributed. What is drafted this way is only
roughly what the model would write; the target decides as ever.
"""
