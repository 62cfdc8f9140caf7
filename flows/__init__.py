"""What runs, and the command line."""
