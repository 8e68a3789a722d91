"""Stores that are kept at a URL: each home is a checkout, brought to the state there before a command writes.

A command holds the lock of its home and the lease of the store. It brings the home to the state at the URL (`bring`),
sends input that only this home has (`send`), does its work as in any home, and sends what is new. The state at the URL
moves by one conditional put, so until then the store has the state before, with the input; what a killed or refused
writer did is in its home alone, and the next command there discards it and reads its input again.
"""
