"""Configuration of the documentation's build."""
