"""Values that are texts: strings, names, addresses, documents."""
