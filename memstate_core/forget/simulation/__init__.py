"""Simulation of a policy over a store's recorded past, night by night."""
