"""Models with a recurrent network inside, which `unrolled.explain` can open."""
