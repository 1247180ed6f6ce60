"""Sets that parameters must stay in, each reached from free numbers."""
