"""What runs next to learner code. Nothing in this room is secret, and nothing
here imports another room of the package: in the sandbox there is no other.
"""
