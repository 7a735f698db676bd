"""Foreign models to Model values of source ops. A scanner reads types, a parser reads meaning."""
