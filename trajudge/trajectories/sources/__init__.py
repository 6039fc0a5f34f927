"""The register of data sets: licence, labels, and what may be done with them."""
