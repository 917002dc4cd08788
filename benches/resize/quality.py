#!/usr/bin/env python3
"""How near pictures of another width are to a resize by the Lanczos kernel of three lobes in linear
light and double precision: those of towebp (coded without loss), Pillow, sharp, and sharp's linear
pipeline. It needs NumPy and Pillow. SCORE is a command that prints a score for each of the pictures
behind the first, to which they are compared.

    npm install --prefix benches/service/peer
    benches/resize/quality.py --score SCORE --divisor 9 PICTURES

With --references it only writes the pictures of that resize, each within a box, which other servers'
answers can be compared to by `peers --scores`:

    benches/resize/quality.py --references FOLDER --box 512 PICTURES
"""

import argparse
import subprocess
import tempfile
from pathlib import Path

import numpy
from PIL import Image, ImageOps

ROOT = Path(__file__).resolve().parents[2]

SHARP = """
const sharp = require(process.argv[1] + '/node_modules/sharp');
const [file, width, height, plain, linear] = process.argv.slice(2);
const size = { width: +width, height: +height, fit: 'fill' };
(async () => {
  const open = () => sharp(file).removeAlpha();
  const save = (pipeline, to) => pipeline.toColourspace('srgb').png().toFile(to);
  await save(open().resize(size), plain);
  await save(open().pipelineColourspace('scrgb').resize(size), linear);
})();
"""


def to_light(samples):
    return numpy.where(samples <= 0.04045, samples / 12.92, ((samples + 0.055) / 1.055) ** 2.4)


def to_samples(light):
    light = numpy.clip(light, 0, 1)
    return numpy.where(light <= 0.0031308, light * 12.92, 1.055 * light ** (1 / 2.4) - 0.055)


def weights(before, after):
    """The weight of each old pixel in each new one."""
    scale = before / after
    stretch = max(scale, 1.0)
    matrix = numpy.zeros((after, before))
    for new in range(after):
        center = (new + 0.5) * scale
        first = max(0, int(center - 3 * stretch - 1))
        old = numpy.arange(first, min(before, int(center + 3 * stretch + 2)))
        x = (old + 0.5 - center) / stretch
        kernel = numpy.where(abs(x) < 3, numpy.sinc(x) * numpy.sinc(x / 3), 0)
        matrix[new, old] = kernel / kernel.sum()
    return matrix


def reference(image, size):
    light = to_light(numpy.asarray(image, dtype=numpy.float64) / 255)
    down, across = weights(light.shape[0], size[1]), weights(light.shape[1], size[0]).T
    channels = [down @ light[:, :, channel] @ across for channel in range(3)]
    samples = to_samples(numpy.stack(channels, 2))
    return Image.fromarray((samples * 255 + 0.5).astype(numpy.uint8))


def scores(options, file, folder):
    image = Image.open(file).convert("RGB")
    width = image.width // options.divisor
    height = max(1, (image.height * width + image.width // 2) // image.width)
    names = ["reference", "towebp", "pillow", "sharp", "linear"]
    paths = [str(Path(folder) / f"{name}.png") for name in names]
    reference(image, (width, height)).save(paths[0])
    webp = str(Path(folder) / "towebp.webp")
    box = ["--width", str(width), "--height", str(height), "--fit", "fill"]
    command = [options.towebp, "convert", file, *box, "--mode", "lossless", "-o", webp]
    subprocess.run(command, check=True, capture_output=True)
    Image.open(webp).convert("RGB").save(paths[1])
    image.resize((width, height), Image.LANCZOS).save(paths[2])
    command = ["node", "-e", SHARP, options.peer, file, str(width), str(height), *paths[3:]]
    subprocess.run(command, check=True)
    command = [*options.score.split(), *paths]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [float(score) for score in out.split()]


def write_references(options):
    options.references.mkdir(parents=True, exist_ok=True)
    for file in options.pictures:
        image = ImageOps.exif_transpose(Image.open(file)).convert("RGB")
        scale = min(1, options.box / max(image.size))
        size = [max(1, int(side * scale + 0.5)) for side in image.size]
        reference(image, size).save(options.references / f"{Path(file).stem}.png")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--towebp", default=str(ROOT / "target/release/towebp"))
    parser.add_argument("--peer", default=str(ROOT / "benches/service/peer"))
    parser.add_argument("--score")
    parser.add_argument("--divisor", type=int, default=9)
    parser.add_argument("--references", type=Path)
    parser.add_argument("--box", type=int, default=512)
    parser.add_argument("pictures", nargs="+")
    options = parser.parse_args()
    if options.references:
        write_references(options)
        return
    if not options.score:
        parser.error("--score or --references is missing")
    print("picture: towebp, Pillow, sharp, sharp's linear pipeline")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for file in options.pictures:
            rows.append(scores(options, file, folder))
            print(Path(file).name, *(f"{score:.1f}" for score in rows[-1]), flush=True)
    print("mean", *(f"{score:.1f}" for score in numpy.mean(rows, 0)))


if __name__ == "__main__":
    main()
