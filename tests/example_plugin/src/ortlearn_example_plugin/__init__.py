"""A loss, a penalty, a learning rate, a schedule and a gradient rule, found by their entry points."""
