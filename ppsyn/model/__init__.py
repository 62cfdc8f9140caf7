"""The graphical model: junction tree, fit, projection."""
