"""What instructors and authors run: build chapters, judge submissions, keep a class.

Importing this package is cheap and gives nothing away: its `kernel` room also
stands next to learner code, where none of the other rooms exists.
"""
