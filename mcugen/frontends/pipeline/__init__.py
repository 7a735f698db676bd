"""Signal chains: a TOML of channels, filters, a window, features and a model, to source ops."""
