"""Tables as people have them: how a file separates and quotes its fields, and which columns hold text and label."""
