"""What a chapter would otherwise repeat."""
