"""How models are called: settings, command-line options, windows, and a model ready to be asked."""
