#!/usr/bin/env python3
"""Which files towebp, Pillow and libvips read, and whether their pixels agree: the table of docs/formats.md.

    benches/formats.py TOWEBP FOLDER...

It needs Pillow, NumPy and pyvips. Files of the folders count by what they begin with. Each reader gives the first
picture upright, in sRGB with its profile applied, in 8 bits; two agree if the mean difference of a sample, over
gray, is at most 2. Files that no reader reads are left out. Lines behind the table name what towebp alone lacks.
"""
import subprocess, sys, warnings
from io import BytesIO
from pathlib import Path

import numpy, pyvips
from PIL import Image, ImageCms, ImageOps

KINDS = {
    "PNG": [b"\x89PNG"],
    "JPEG": [b"\xff\xd8\xff"],
    "GIF": [b"GIF8"],
    "BMP": [b"BM"],
    "WebP": [b"RIFF"],
    "TIFF": [b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"],
}
SRGB = ImageCms.createProfile("sRGB")


def main(towebp, *folders):
    warnings.simplefilter("ignore")
    readers = {"towebp": lambda file: by_towebp(towebp, file), "Pillow": by_pillow, "libvips": by_vips}
    lacking = []
    print("| | files | " + " | ".join(f"{name} reads, as another does" for name in readers) + " |")
    for kind, starts in KINDS.items():
        files = sorted(path for folder in folders for path in Path(folder).rglob("*") if path.is_file())
        files = [path for path in files if path.read_bytes()[:4].startswith(tuple(starts))]
        count, reads, agrees = 0, dict.fromkeys(readers, 0), dict.fromkeys(readers, 0)
        for path in files:
            pictures = {name: attempt(reader, path.read_bytes()) for name, reader in readers.items()}
            if all(picture is None for picture in pictures.values()):
                continue
            count += 1
            for name, picture in pictures.items():
                others = [other for each, other in pictures.items() if each != name]
                reads[name] += picture is not None
                agrees[name] += any(is_same(picture, other) for other in others)
            _, pillow, vips = pictures.values()
            if not any(is_same(pictures["towebp"], other) for other in (pillow, vips)):
                lacking.append((path, kind, *(state(pictures, name) for name in readers), is_same(pillow, vips)))
        figures = [f"{reads[name]}, {agrees[name]}" for name in readers]
        print(f"| {kind} | {count} | " + " | ".join(figures) + " |", flush=True)
    for path, kind, *states, others_agree in lacking:
        print(kind, path, "the others agree" if others_agree else "", *states)


def state(pictures, name):
    picture = pictures[name]
    return f"{name}: {'not read' if picture is None else picture.shape[1::-1]}"


def attempt(reader, file):
    try:
        return reader(file)
    except Exception:  # Any failure of a reader counts as one.
        return None


def by_towebp(towebp, file):
    flags = ["--accept", "webp,tiff", "--mode", "lossless", "--effort", "low", "--animation", "first"]
    command = [towebp, "convert", "-", "-o", "-", *flags]
    webp = subprocess.run(command, input=file, check=True, capture_output=True).stdout
    return over_gray(Image.open(BytesIO(webp)))


def by_pillow(file):
    picture = Image.open(BytesIO(file))
    picture.load()
    profile = picture.info.get("icc_profile")
    picture = ImageOps.exif_transpose(picture)
    if profile and picture.mode in ("RGB", "RGBA", "L", "CMYK"):
        mode = "RGB" if picture.mode in ("L", "CMYK") else picture.mode
        try:
            source = ImageCms.ImageCmsProfile(BytesIO(profile))
            picture = ImageCms.profileToProfile(picture, source, SRGB, outputMode=mode)
        except ImageCms.PyCMSError:
            pass
    return over_gray(picture)


def by_vips(file):
    picture = pyvips.Image.new_from_buffer(file, "", fail_on="error").autorot()
    if picture.get_typeof("icc-profile-data"):
        try:
            picture = picture.icc_transform("srgb", embedded=True).copy_memory()
        except pyvips.Error:
            pass
    picture = picture.colourspace("srgb").cast("uchar")
    samples = picture.numpy()
    return over_gray(Image.fromarray(samples[..., 0] if samples.shape[-1:] == (1,) else samples))


def over_gray(picture):
    if picture.mode.startswith("I;16"):
        picture = Image.fromarray((numpy.asarray(picture) // 257).astype(numpy.uint8))
    picture = picture.convert("RGBA")
    ground = Image.new("RGBA", picture.size, (128, 128, 128, 255))
    ground.alpha_composite(picture)
    return numpy.asarray(ground, float)[..., :3]


def is_same(one, other):
    if one is None or other is None or one.shape != other.shape:
        return False
    return abs(one - other).mean() <= 2


if __name__ == "__main__":
    main(*sys.argv[1:])
