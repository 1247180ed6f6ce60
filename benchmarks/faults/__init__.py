"""Fault injection: killed processes, denied permissions, altered files and concurrency."""
