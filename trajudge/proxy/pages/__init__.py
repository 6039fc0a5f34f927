"""What is done to pages: which requests load one, and how an overlay gets into it."""
