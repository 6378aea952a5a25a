"""What the app costs its viewers."""
