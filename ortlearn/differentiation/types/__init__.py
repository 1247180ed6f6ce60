"""Types and shapes of tensors of gradient graphs."""
