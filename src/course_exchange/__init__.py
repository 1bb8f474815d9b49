"""nbgrader's exchange as learners' servers see it: a folder that all share, or ngshare,
of which everybody has a copy of what they may see. Learners' servers have this package,
`course_home` and `course_utils`, and not `course_grader`."""
