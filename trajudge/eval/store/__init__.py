"""What runs read and write: tables of judgments and labels, run folders, published layouts."""
