"""Simulation: replays a policy over a store's recorded events, night by night."""
