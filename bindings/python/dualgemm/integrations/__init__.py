"""Adapters to other packages; each is imported by its own name and needs that package."""
