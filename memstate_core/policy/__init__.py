"""Settings, policies and rules: their models, how they are loaded and validated, and the policy's hash."""

from memstate_core.policy.settings import Policy, Settings, load_settings

__all__ = ["Policy", "Settings", "load_settings"]
