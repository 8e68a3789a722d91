"""Attacks on a store, by class: each tries random cases and fails where a promise of the threat model does not hold.

`test_short_form` runs a few cases of each class, `python -m tests.adversary --minutes N` as many as the time allows.
"""
