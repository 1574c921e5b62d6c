"""Writing launchers: a writer, literals, expressions, and one emitter for each host language."""
