"""The ``unrolled`` command and ``python -m unrolled``; signals are handled before anything large is imported."""

from unrolled.cli.interruption import install

__all__ = ["main"]


def main() -> None:
    """Run the command line of this process and exit with its code."""
    install()
    from unrolled.cli.main import main as run_main

    run_main()


if __name__ == "__main__":
    main()
