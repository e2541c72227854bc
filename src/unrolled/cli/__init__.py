"""The command line: one file for each command. No command imports torch before it needs it."""
