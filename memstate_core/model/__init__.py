"""Types that every package shares: errors, ids, scopes, observations, and the columns of frames."""
