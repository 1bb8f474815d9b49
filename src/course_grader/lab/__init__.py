"""JupyterLab as `course lab` starts it (`server`), and what it has more for somebody
who learns on this machine: hidden checks at once below a visible check.

The kernel (`asking`) tells the Jupyter server's extension (`extension`) which cells
have run; a grading process that the server keeps warm (`service`) judges the
exercise as in a class. Learners' own installations have nothing of this.
"""
