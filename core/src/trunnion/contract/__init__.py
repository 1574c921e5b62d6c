"""The contract: what a plugin implements and what it is handed."""
