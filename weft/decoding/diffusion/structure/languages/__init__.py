"""Regular languages of characters, as automata over bytes and over the tokens of a model."""
