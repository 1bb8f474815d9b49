"""What people type after `course`, by who types it.

Exit codes: 0 it is done, 1 something failed, 2 the command could not be understood or
begun, 3 it is done and somebody should look.
"""
