"""What a new user gets in the first hour: every usual model on usual data, with default parameters."""
