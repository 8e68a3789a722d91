"""The sections of `memstate.toml`, one module each, but for `[policy]`, which is `memstate_core.policy.policy`.

The docstring of each key states its unit and effect; the settings reference is generated from them.
"""
