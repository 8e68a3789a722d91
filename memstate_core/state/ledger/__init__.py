"""The ledger: append-only Delta tables, the chain of their commits, and what may rewrite them."""
