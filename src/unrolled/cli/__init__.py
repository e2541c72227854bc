"""The command line: one file a command, each thin, and none imports torch before it has work to do."""
