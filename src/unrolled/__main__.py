"""``python -m unrolled``: the command line."""

from unrolled.cli.main import main

if __name__ == "__main__":
    main()
