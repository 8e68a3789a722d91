"""Files with which a machine runs a store: units for systemd, an agent for launchd, a crontab, containers."""
