"""Whether a configuration is a fair task, and how hard it is: offline, before any browser."""
