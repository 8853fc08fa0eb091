"""A transfer with probes: `HOST PORT CONTROL BYTES` sends as kernel_transfer.py does, and prints what it prints, then the copies in low priority that
left, and the reductions that the kernel took back because of reports."""

import os
import socket
import subprocess
import sys
import threading

LOWER_EFFORT = 1 << 2
ALL_PROTOCOLS = socket.htons(3)


def counters():
    lines = [line.split() for line in open("/proc/net/netstat") if line.startswith("TcpExt:")]
    return {name: int(value) for name, value in zip(lines[0][1:], lines[1][1:])}


class Copies(threading.Thread):
    """Counts what leaves any interface with low priority. The interfaces of `emulate` have no link layer."""

    def __init__(self):
        super().__init__(daemon=True)
        self.count = 0
        self.tap = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, ALL_PROTOCOLS)
        self.tap.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)

    def run(self):
        while True:
            data, (_, _, kind, _, _) = self.tap.recvfrom(64)
            if kind == socket.PACKET_OUTGOING and data[0] >> 4 == 4 and data[1] & 0xFC == LOWER_EFFORT:
                self.count += 1


copies, before = Copies(), counters()
copies.start()
transfer = os.path.join(os.path.dirname(os.path.abspath(__file__)), "kernel_transfer.py")
subprocess.run([sys.executable, transfer, "send", *sys.argv[1:]], check=True)
undone = counters()["TCPDSACKUndo"] - before["TCPDSACKUndo"]
print("copies", copies.count, "undone", undone, flush=True)
