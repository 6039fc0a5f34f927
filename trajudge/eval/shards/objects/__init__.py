"""Where the objects of a sharded run are kept: a folder, or an object store."""
