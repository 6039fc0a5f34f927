"""This machine: its cache folder, environments in it, its Chromium, who reaches an address."""
