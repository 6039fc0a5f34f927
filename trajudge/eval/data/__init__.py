"""What runs read and write: sources, run folders, journals, manifests, published judgments."""
