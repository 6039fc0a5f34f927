"""What loaders of agents' own logs share: pictures that a record names or holds, and detection."""
