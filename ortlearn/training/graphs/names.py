"""Reserved names of tensors in the graphs of a training."""

__all__ = ["BATCH", "MEMBERS", "OBJECTIVE", "OWN_NAMES", "RATE", "SAMPLE_INDICES", "SAMPLE_WEIGHT", "SMOOTH"]

SAMPLE_WEIGHT = "ortlearn_sample_weight"
SAMPLE_INDICES = "ortlearn_rows"
#: Feature with the weights of the members of an ensemble, of shape (n, n_members).
MEMBERS = "ortlearn_members"
RATE = "ortlearn_rate"
OBJECTIVE = "ortlearn_objective"
SMOOTH = "ortlearn_smooth_objective"
#: Name of the dimension of a batch.
BATCH = "batch"
#: Names of tensors that no graph of a user may have.
OWN_NAMES = {SAMPLE_WEIGHT, SAMPLE_INDICES, RATE, OBJECTIVE, MEMBERS}
