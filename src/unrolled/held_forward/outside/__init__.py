"""What no mode of this thread meets: other threads, earlier runs, shared memory, and numbers taken out of torch."""
