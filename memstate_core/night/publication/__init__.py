"""Publishing the served snapshots to object storage, from which replicas serve them."""
