"""The texts of attacks and their benign twins, in versioned YAML files, in our own words."""
