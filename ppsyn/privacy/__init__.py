"""Trusted: everything that draws noise or charges an account."""
