"""trunnion: describe a GPU kernel program once; any installed backend compiles, binds and launches it."""
