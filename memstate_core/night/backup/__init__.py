"""Backups of a store: a consistent, incremental, checksummed copy while runs go on, and back."""
