"""One transfer with a congestion control of the kernel: `receive PORT` prints the hash of what came, `send HOST PORT CONTROL BYTES` of
what went; both exchange them, and the sender prints `equal`, seconds, retransmitted segments, and duplicate segments that the receiver reported."""

import hashlib
import socket
import struct
import sys
import time

TCP_INFO, TCP_CONGESTION = 11, 13
# Places in `struct tcp_info`.
TOTAL_RETRANS, DSACK_DUPS = 100, 216


def block(number):
    return hashlib.sha256(number.to_bytes(8, "big")).digest() * 2048


def receive(port):
    listener = socket.create_server(("", port), family=socket.AF_INET)
    while True:
        connection, _ = listener.accept()
        digest = hashlib.sha256()
        while data := connection.recv(1 << 18):
            digest.update(data)
        connection.sendall(digest.digest())
        connection.close()


def connect(host, port, control):
    end = time.monotonic() + 20
    while True:
        sender = socket.socket()
        sender.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, control.encode())
        try:
            sender.connect((host, port))
            return sender
        except ConnectionRefusedError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def send(host, port, control, length):
    sender = connect(host, port, control)
    digest, begin, left, number = hashlib.sha256(), time.monotonic(), length, 0
    while left > 0:
        data = block(number)[:left]
        sender.sendall(data)
        digest.update(data)
        left, number = left - len(data), number + 1
    sender.shutdown(socket.SHUT_WR)
    answer = b""
    while data := sender.recv(64):
        answer += data
    used = sender.getsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, 16).rstrip(b"\0").decode()
    info = sender.getsockopt(socket.IPPROTO_TCP, TCP_INFO, 224)
    again, reported = (struct.unpack_from("=I", info, place)[0] for place in (TOTAL_RETRANS, DSACK_DUPS))
    verdict = "equal" if answer == digest.digest() and used == control else "different"
    print(verdict, f"{time.monotonic() - begin:.3f}", again, reported, flush=True)


if sys.argv[1] == "receive":
    receive(int(sys.argv[2]))
else:
    send(sys.argv[2], int(sys.argv[3]), sys.argv[4], int(sys.argv[5]))
