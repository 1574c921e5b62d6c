"""Files and folders of this process: private, locked, removed at the end, and typed errors where the system refuses."""
