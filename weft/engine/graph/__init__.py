"""What a program is to the engine: nodes, edges, joins, policies, and the checked graph of them."""
