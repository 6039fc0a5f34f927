"""This machine: the user's cache folder, environments in it, who reaches an address."""
