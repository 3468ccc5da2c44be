"""python -m qkv is the program qkv."""
import os
import sys


def main() -> None:
    """Becomes the program, with the arguments of this process."""
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "program")
    os.execv(program, ["qkv", *sys.argv[1:]])


if __name__ == "__main__":
    main()
