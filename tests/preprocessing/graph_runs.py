"""Functions that run graphs."""

import onnxruntime


def run(model, feeds):
    """Return the first output of a model; inputs that it does not have are ignored."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = {value.name for value in session.get_inputs()}
    return session.run(None, {name: array for name, array in feeds.items() if name in names})[0]
