"""The commands, by what they are about. What one needs is imported when it runs, so that help is there at once."""
