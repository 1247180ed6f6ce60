"""The pages of docs/reference, made from the plugins that are installed."""
