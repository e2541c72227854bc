"""What trained models are judged by, where counting right answers is not enough: one measure a file."""
