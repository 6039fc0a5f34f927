"""The commands of ``trajudge label``."""
