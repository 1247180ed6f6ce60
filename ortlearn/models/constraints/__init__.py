"""Constraints on parameters, satisfied by reparametrisation with free (unconstrained) values."""
