"""The environments' bars and peers, of which ``__main__`` prints the rows."""
