"""The durable side: ledger, graph, snapshots, and the fold that makes one from the other."""
