"""What a run through the proxy looked like: tables and one screen."""
