"""Settings and policies: what a user may decide, where it is read, and its hash."""

from memstate_core.policy.settings import Policy, Settings, load_settings

__all__ = ["Policy", "Settings", "load_settings"]
