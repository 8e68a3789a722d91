"""Read-only replicas: they fetch published snapshots from object storage, and serve them as a store serves its own."""
