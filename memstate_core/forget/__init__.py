"""Forgetting: salience decays with time, and topics that nobody needs leave the active set, reversibly."""
