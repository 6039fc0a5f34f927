"""One adapter a trainer, each without importing it."""
