"""What the product keeps on this machine: the user's cache folder, and environments made there."""
