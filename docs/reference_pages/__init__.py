"""The pages of docs/reference, made from the plugins of ortlearn."""
