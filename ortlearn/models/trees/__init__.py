"""Trees, forests and boosting: fixed splits that lead to leaves, whose values are parameters."""
