#!/usr/bin/env python3
"""CPU and wall time of JPEGs and PNGs that get another width, by towebp and by sharp, which take
turns. towebp's is that of its whole process, the least of ROUNDS; sharp's is that of its `resize`
in a process that is warm, with as many threads.

    npm install --prefix benches/service/peer
    benches/resize/time.py --threads 1 --widths 300,800 PICTURES
"""

import argparse
import json
import resource
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Prints the least CPU and wall time in milliseconds of some conversions behind a first one.
SHARP = """
const sharp = require(process.argv[1] + '/node_modules/sharp');
const [file, width, threads, rounds] = process.argv.slice(2);
sharp.concurrency(+threads);
sharp.cache(false);
(async () => {
  const input = require('fs').readFileSync(file);
  const convert = () => sharp(input).autoOrient()
    .resize({ width: +width, withoutEnlargement: true }).webp({ quality: 85 }).toBuffer();
  await convert();
  let [cpu, wall] = [Infinity, Infinity];
  for (let round = 0; round < +rounds; round++) {
    const [before, start] = [process.cpuUsage(), performance.now()];
    await convert();
    const used = process.cpuUsage(before);
    cpu = Math.min(cpu, (used.user + used.system) / 1000);
    wall = Math.min(wall, performance.now() - start);
  }
  console.log(JSON.stringify([cpu, wall]));
})();
"""


def ours(options, file, width):
    """The least CPU and wall time in milliseconds."""
    command = [options.towebp, "convert", file, "--width", str(width), "--quality", "85"]
    command += ["--threads", str(options.threads), "-o", "/dev/null"]
    least = [float("inf")] * 2
    for _ in range(options.rounds):
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        subprocess.run(command, check=True, capture_output=True)
        after, end = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        least = [min(least[0], cpu * 1e3), min(least[1], (end - start) * 1e3)]
    return least


def sharps(options, file, width):
    """The same of sharp."""
    numbers = [str(number) for number in (width, options.threads, options.rounds)]
    command = ["node", "-e", SHARP, options.peer, file, *numbers]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--towebp", default=str(ROOT / "target/release/towebp"))
    parser.add_argument("--peer", default=str(ROOT / "benches/service/peer"))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--widths", default="300,800,1600")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("pictures", nargs="+")
    options = parser.parse_args()
    print("picture width: towebp cpu, wall; sharp cpu, wall; sharp / towebp cpu, wall")
    for file in options.pictures:
        for width in map(int, options.widths.split(",")):
            turns = [(ours(options, file, width), sharps(options, file, width))
                     for _ in range(options.turns)]
            (cpu, wall), (peer_cpu, peer_wall) = [
                [min(turn[who][kind] for turn in turns) for kind in (0, 1)] for who in (0, 1)
            ]
            print(f"{Path(file).name} {width}: {cpu:.0f}, {wall:.0f}; {peer_cpu:.0f}, "
                  f"{peer_wall:.0f}; {peer_cpu / cpu:.2f}, {peer_wall / wall:.2f}", flush=True)


if __name__ == "__main__":
    main()
