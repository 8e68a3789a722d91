"""Notifications of nights that fail, warn or recover, by webhook and e-mail."""
