"""From the bytes of one row to an accepted observation, or a refusal with its reason."""
