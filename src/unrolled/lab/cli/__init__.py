"""The laboratory's part of the command line: one file a command."""
