"""Renganathan and Singh, Second-order RNNs: one table or figure a file."""
