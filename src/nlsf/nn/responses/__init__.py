"""Responses Psi: from invariant norms to the coefficients of a filter."""
