"""Forgetting: salience decays with time, and unneeded topics leave the active set, reversibly."""
