"""Measurements of every scikit-learn model: conversion, gradients, training and exported predictions."""
