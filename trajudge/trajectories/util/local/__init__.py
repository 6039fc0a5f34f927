"""This machine: its folders, cache, environments, Chromium, threads, who reaches an address."""
