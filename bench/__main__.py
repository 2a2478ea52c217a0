"""`python -m bench`; the streaming suite and the suite `first` have command lines of their own."""

import sys

if __name__ == "__main__":
    if sys.argv[1:2] == ["streaming"]:
        from bench.streaming import main as streaming

        sys.exit(streaming(sys.argv[2:]))
    if sys.argv[1:2] == ["first"]:
        from bench.first import main as first

        sys.exit(first(sys.argv[2:]))
    from bench.run import main

    sys.exit(main())
