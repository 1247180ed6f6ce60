"""Every classifier and regressor with default parameters, compared with its own fit."""
