"""How much memory this process has."""
import os


def resident():
    """Bytes in the main memory."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
