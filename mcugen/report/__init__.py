"""One report value, printed for a terminal or as JSON."""
