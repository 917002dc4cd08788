#!/usr/bin/env python3
"""What the modes of towebp, cwebp and a palette do to small pictures: rows of a table of benches/README.md.

    benches/icons.py TOWEBP FOLDER...

It needs Pillow and NumPy, and cwebp, pngquant and oxipng in the path. For each folder of PNGs: bytes of all together,
the share of pictures whose visible pixels stay exact, and the mean change of color (CIE76 in Lab, over white or
black, whichever is more, as the mean over visible pixels, then over pictures).
"""
import subprocess, sys, tempfile
from io import BytesIO
from pathlib import Path

import numpy
from PIL import Image

QUALITY = "85"


def main(towebp, *folders):
    convert = [towebp, "convert", "-", "-o", "-", "--quality", QUALITY, "--mode"]
    oxipng = ["oxipng", "--quiet", "--opt", "max", "--strip", "all", "--alpha", "--stdout", "-"]
    ways = {
        "towebp, auto": lambda png: run([*convert, "auto"], png),
        "towebp, lossy": lambda png: run([*convert, "lossy"], png),
        "towebp, lossless": lambda png: run([*convert, "lossless"], png),
        "cwebp -q 85": lambda png: run(["cwebp", "-quiet", "-q", QUALITY, "-o", "-", "--", "-"], png),
        "cwebp -lossless": lambda png: run(["cwebp", "-quiet", "-lossless", "-o", "-", "--", "-"], png),
        "pngquant 256": lambda png: run(["pngquant", "256", "-"], png),
        "pngquant 256, oxipng": lambda png: run(oxipng, run(["pngquant", "256", "-"], png)),
        "oxipng": lambda png: run(oxipng, png),
    }
    for folder in folders:
        files = [file.read_bytes() for file in sorted(Path(folder).glob("*.png"))]
        print(f"| {Path(folder).name}, {len(files)} | | | |")
        for name, way in ways.items():
            coded = [(png, way(png)) for png in files]
            changes = [change(png, other) for png, other in coded]
            size = sum(len(other) for _, other in coded)
            exact = 100 * sum(each == 0 for each in changes) / len(files)
            print(f"| {name} | {size:,} | {exact:.0f} % | {numpy.mean(changes):.2f} |")


def run(command, png):
    return subprocess.run(command, input=png, check=True, capture_output=True).stdout


def change(png, other):
    before, after = (Image.open(BytesIO(file)).convert("RGBA") for file in (png, other))
    visible = numpy.asarray(before)[..., 3] > 0
    far = [numpy.linalg.norm(lab(before, gray) - lab(after, gray), axis=-1) for gray in (0, 255)]
    return numpy.maximum(*far)[visible].mean() if visible.any() else 0


def lab(picture, gray):
    """CIE Lab with D65 of the picture over a gray."""
    ground = Image.new("RGBA", picture.size, (gray, gray, gray, 255))
    ground.alpha_composite(picture)
    rgb = numpy.asarray(ground, float)[..., :3] / 255
    rgb = numpy.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    matrix = numpy.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = rgb @ matrix.T / matrix.sum(axis=1)
    x, y, z = numpy.moveaxis(numpy.where(xyz > 216 / 24389, numpy.cbrt(xyz), xyz * 841 / 108 + 4 / 29), -1, 0)
    return numpy.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=-1)


main(*sys.argv[1:])
