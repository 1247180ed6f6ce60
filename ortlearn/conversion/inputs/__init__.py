"""From rows as people have them to the inputs of a graph."""
