"""Labels, classes and class weights."""
