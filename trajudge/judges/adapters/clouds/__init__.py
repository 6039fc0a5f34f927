"""Models where a cloud serves them, through the variants that the makers' own SDKs have for it."""
