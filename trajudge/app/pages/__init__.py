"""What every page is made of: templates, untrusted text made visible, figures as SVG."""
