"""The course's home, the page that a learner's Jupyter server opens, and the frame
that every page of the course is in. Learners on a class server have this package,
`course_utils` and `course_exchange`, and not `course_grader`."""
