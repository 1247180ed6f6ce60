"""Change the results of each plugin by 1 %, one at a time, and see which test notices."""
