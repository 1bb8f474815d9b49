"""A class over a term, thin over nbgrader's own API: release, collect, grade,
feedback, export. The exchange, the gradebook and formgrader stay nbgrader's.
"""
