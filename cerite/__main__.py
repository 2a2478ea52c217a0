"""`python -m cerite` is the command `cerite`."""

from cerite.cli import main

if __name__ == "__main__":
    main()
