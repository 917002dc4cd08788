#!/usr/bin/env python3
"""What hostile accounts do to a server's memory and to other accounts: a table of benches/README.md.

    benches/hostile.py TOWEBP...
    benches/hostile.py --store TOWEBP URL...

Each TOWEBP is a built program; they take turns. It needs Python alone. Every server runs on two threads, on a
port of the loopback address, with its data in a temporary folder, or in the empty database of PostgreSQL at URL,
which has no TLS.
"""
import http.client, os, re, struct, subprocess, sys, tempfile, threading, time, urllib.parse, zlib
from collections import Counter
from pathlib import Path
from random import Random

ENLARGED = "&width=2500&height=2500&fit=fill&enlarge=true&effort=max&target=95"
LONG_TEXT = "&watermark_size=auto&watermark=" + "ab%E0%A4%95%E0%A4%96" * 600
SECONDS = 30


def main(*programs):
    print("| program | largest resident set with growing animations, --memory 512MiB |")
    for program in programs:
        print(f"| {program} | {memory(program) / 1000:,.0f} MB |", flush=True)
    flat, small, middle, large = bmp(1, 1), bmp(260, 260), bmp(800, 800), bmp(2400, 2500)
    rows = [
        ("0.64 MP beside 2 accounts with 2 enlarging clients each", middle, 2, 2, ENLARGED, flat),
        ("0.64 MP beside 4 accounts with 2 enlarging clients each", middle, 4, 2, ENLARGED, flat),
        ("0.07 MP beside 2 accounts with 2 clients with long texts each", small, 2, 2, LONG_TEXT, flat),
        ("0.64 MP beside 1 account with 8 clients with 6 MP", middle, 1, 8, "", large),
        ("0.07 MP beside 1 account with 8 clients with 6 MP", small, 1, 8, "", large),
    ]
    print("| it sends | program | alone: p50, p99 ms | beside: p50, p99 ms | answers with 200, others |")
    for name, own, accounts, clients, query, body in rows:
        for program in programs:
            with Server(program) as server:
                token = server.account()
                quiet = server.latencies(token, own, SECONDS / 3)
                stop = threading.Event()
                tokens = [server.account() for _ in range(accounts)]
                for greedy in tokens:
                    for _ in range(clients):
                        threading.Thread(target=server.repeat, args=(greedy, query, body, stop), daemon=True).start()
                time.sleep(2)
                beside = server.latencies(token, own, SECONDS)
                stop.set()
                print(f"| {name} | {program} | {percentiles(quiet)} | {percentiles(beside)} |"
                      f" {sum(s == 200 for s, _ in beside)}, {sum(s != 200 for s, _ in beside)} |", flush=True)


def changes(program, url):
    """Seconds that pages take while one session rolls its token from several addresses; the store is shared."""
    with tempfile.TemporaryDirectory() as folder:
        secret = Path(folder, "secret")
        secret.touch(mode=0o600)
        secret.write_text(os.urandom(32).hex())
        store = ["--store", url, "--store-tls", "off", "--secret-file", str(secret)]
        with Server(program, *store, "--trusted-proxy", "127.0.0.1") as server:
            form = {"email": "owner@example.org", "password": "correct horse battery"}
            _, headers, _ = server.post("/signup", form, {})
            cookie = {"Cookie": headers["Set-Cookie"].split(";")[0]}
            _, _, page = server.post("/tokens", None, cookie)
            secret = {"csrf": re.search(r'name="csrf" value="([^"]+)"', page)[1]}
            secret["token"] = re.search(r'id="token-(\w+)"', page)[1]
            for addresses in (4, 40):
                stop, statuses = threading.Event(), Counter()

                def roll(number):
                    while not stop.is_set():
                        from_address = {"X-Forwarded-For": f"192.0.2.{number}"}
                        try:
                            status, _, _ = server.post("/token/rotate", secret, cookie | from_address)
                        except (OSError, http.client.HTTPException):
                            return
                        statuses[status] += 1

                for number in range(addresses):
                    threading.Thread(target=roll, args=(number,), daemon=True).start()
                time.sleep(2)
                for path in ("/signin", "/readyz"):
                    times = []
                    for _ in range(5):
                        began = time.monotonic()
                        server.post(path, None, {"X-Forwarded-For": "192.0.2.200"})
                        times.append(time.monotonic() - began)
                    print(f"| {program} | {addresses} | {path} | {max(times):.2f} s |", flush=True)
                stop.set()
                time.sleep(2)
                print(f"<!-- {addresses} addresses: {dict(statuses)} -->")


def percentiles(answers):
    times = sorted(1000 * seconds for status, seconds in answers if status == 200)
    return f"{times[len(times) // 2]:.0f}, {times[len(times) * 99 // 100]:.0f}" if times else "none"


def memory(program):
    """The largest resident set in kB while two clients of one account send animations that grow."""
    with Server(program, "--memory", "512MiB", "--max-body", "32MiB") as server:
        token, animation, stop = server.account(), growing_png(), threading.Event()
        query = "&mode=lossy&quality=100&effort=low"
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(server.convert(token, query, animation, "image/png")))
                   for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(f"<!-- {len(animation):,} bytes; answers: {sorted(status for status, _ in answers)} -->")
        status = Path(f"/proc/{server.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+)", status)[1])


class Server:
    def __init__(self, program, *flags):
        self.program, self.flags = program, flags

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.data, self.accounts = f"{self.folder.name}/data", 0
        command = [self.program, "serve", "--listen", "127.0.0.1:0", "--threads", "2", "--data", self.data, *self.flags]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        lines = []
        for line in self.process.stdout:
            lines.append(line)
            if found := re.search(r"http://127\.0\.0\.1:(\d+)", line):
                self.port = int(found[1])
                break
        else:
            sys.exit("".join(lines))
        threading.Thread(target=self.process.stdout.read, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.folder.cleanup()

    def account(self):
        self.accounts += 1
        command = [self.program, "account", "create", f"{self.accounts}@example.org", "--data", self.data]
        made = subprocess.run(command, check=True, capture_output=True, text=True)
        return re.search(r"\btwp_\w+", made.stdout)[0]

    def convert(self, token, query, body, media_type="image/bmp"):
        began = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            connection.request("POST", f"/convert?token={token}{query}", body, {"Content-Type": media_type})
            answer = connection.getresponse()
            answer.read()
            return answer.status, time.monotonic() - began
        finally:
            connection.close()

    def post(self, path, form, headers):
        """Sends a form, or gets the page if there is none."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        method = "GET" if form is None else "POST"
        headers = headers | ({} if form is None else {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"})
        connection.request(method, path, urllib.parse.urlencode(form or {}), headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()

    def latencies(self, token, body, seconds):
        answers, until = [], time.monotonic() + seconds
        while time.monotonic() < until:
            answers.append(self.convert(token, "", body))
        return answers

    def repeat(self, token, query, body, stop):
        while not stop.is_set():
            try:
                self.convert(token, query, body)
            except (OSError, http.client.HTTPException):
                return


def bmp(width, height):
    """Waves, as a BMP of 24 bits."""
    row = b"".join(bytes([x * 5 % 256, x * 3 % 256, x * x // 64 % 256]) for x in range(width))
    row += bytes(-len(row) % 4)
    pixels = b"".join(row[y % 97 * 3:] + row[:y % 97 * 3] for y in range(height))
    header = struct.pack("<2sIIIIiiHHIIiiII", b"BM", 54 + len(pixels), 0, 54, 40, width, height, 1, 24, 0, len(pixels), 0, 0, 0, 0)
    return header + pixels


def growing_png():
    """An animation of 5,000 frames of noise in two colors that repeats within deflate's window."""
    random, side, frames = Random(1), 300, 5000
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    file = [b"\x89PNG\r\n\x1a\n", chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 1, 3, 0, 0, 0)),
            chunk(b"acTL", struct.pack(">II", frames, 0)), chunk(b"PLTE", bytes([0, 0, 0, 255, 255, 255]))]
    number = 0
    for frame in range(frames):
        rows = b"".join(b"\0" + random.randbytes(38) for _ in range(30)) * 10
        control = struct.pack(">IIIIIHHBB", number, side, side, 0, 0, 1, 25, 0, 0)
        file.append(chunk(b"fcTL", control))
        number += 1
        data = zlib.compress(rows, 9)
        if frame == 0:
            file.append(chunk(b"IDAT", data))
        else:
            file.append(chunk(b"fdAT", struct.pack(">I", number) + data))
            number += 1
    return b"".join(file + [chunk(b"IEND", b"")])


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if sys.argv[1] == "--store":
        for program, url in zip(sys.argv[2::2], sys.argv[3::2]):
            changes(program, url)
    else:
        main(*sys.argv[1:])
