"""nbgrader's exchange where learners' servers and the course share no folder: ngshare
keeps it, and everybody has a copy of what they may see. Learners' servers have this
package and `course_utils`, and not `course_grader`."""
