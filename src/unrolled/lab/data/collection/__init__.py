"""The files of the datasets: which there are, whether they are complete and correct, and how to download them."""
