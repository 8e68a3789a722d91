"""Context packs: the answer to a question within a budget of tokens, with citations and warnings."""
