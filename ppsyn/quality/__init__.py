"""What a published release is worth, by noisy figures that its account pays for."""
