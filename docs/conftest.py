"""What pytest leaves alone: the settings of Sphinx, which the tests do not need."""

collect_ignore = ["conf.py"]
