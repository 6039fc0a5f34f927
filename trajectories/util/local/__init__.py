"""This machine: its cache folder, environments, Chromium, threads, who reaches an address."""
