"""A hosting platform's operations console: services, machines, alerts, keys (management)."""
