"""Private: everything that sees a row or an exact count."""
