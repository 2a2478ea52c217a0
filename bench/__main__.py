"""`python -m bench`; the streaming suite has a command line of its own."""

import sys

if __name__ == "__main__":
    if sys.argv[1:2] == ["streaming"]:
        from bench.streaming import main as streaming

        sys.exit(streaming(sys.argv[2:]))
    from bench.run import main

    sys.exit(main())
