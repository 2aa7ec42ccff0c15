"""Datasets, official evaluators, metrics, the benchmark runner and the bundled suite."""
