"""From the one source of a chapter to what learners and instructors get."""
