"""python -m qkv is the program qkv."""
import os
import sys

program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "program")
os.execv(program, ["qkv", *sys.argv[1:]])
