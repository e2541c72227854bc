"""The collection of datasets: which are at hand, whether they are whole, and where to get them."""
