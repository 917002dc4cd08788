#!/usr/bin/env python3
"""Makes every picture of this folder; README.md beside it says what each is for.

    python3 testdata/make.py            the made-up pictures (Pillow and numpy)
    python3 testdata/make.py --photos   the photographs too (scikit-image, which ships the originals)

The same bytes at every run with the same versions of Pillow (13.0) and scikit-image (0.26): no clock, and random
numbers from fixed seeds. The bytes of PNG, JPEG and GIF files may differ with other versions.
"""

import struct
import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

HERE = Path(__file__).resolve().parent


def main():
    if "--photos" in sys.argv[1:]:
        photographs()
    alpha_gradient()
    palette()
    grey_16_bit()
    graphic()
    animation()
    bitmaps()
    rotated()


def photographs():
    from skimage import data

    astronaut = Image.fromarray(data.astronaut())
    astronaut.save(HERE / "astronaut.jpg", quality=92, subsampling="4:2:0", optimize=True)
    astronaut.crop((140, 20, 268, 148)).save(HERE / "astronaut.png", optimize=True)
    coffee = Image.fromarray(data.coffee())
    coffee.save(HERE / "coffee.jpg", quality=92, subsampling="4:4:4", optimize=True)
    cat = Image.fromarray(data.chelsea())
    cat.save(HERE / "chelsea.jpg", quality=90, progressive=True, optimize=True)
    # Neither side a multiple of 16 or even: 629 x 421.
    rocket = Image.fromarray(data.rocket()).crop((5, 3, 634, 424))
    rocket.save(HERE / "rocket.jpg", quality=88, subsampling="4:2:0", optimize=True)


def alpha_gradient():
    """Colour that changes with x, alpha with y: fully clear on top, opaque at the bottom."""
    height, width = 96, 160
    x = np.linspace(0, 255, width)[None, :].repeat(height, 0)
    y = np.linspace(0, 255, height)[:, None].repeat(width, 1)
    rgba = np.stack([x, 255 - x, 128 + 0 * x, y], axis=2).round().astype(np.uint8)
    Image.fromarray(rgba, "RGBA").save(HERE / "alpha.png", optimize=True)


def palette():
    """Sixteen colours in 4 bits a pixel, one of them clear by a tRNS chunk; an odd width, so rows end inside a byte."""
    index = (np.add.outer(np.arange(61) // 8, np.arange(83) // 8) % 16).astype(np.uint8)
    image = Image.fromarray(index, "P")
    image.putpalette([value for k in range(16) for value in (k * 17, 255 - k * 17, (k * 85) % 256)])
    image.save(HERE / "palette.png", bits=4, transparency=3, optimize=True)


def grey_16_bit():
    """A slow ramp that has more than 256 steps, under a disc."""
    y, x = np.mgrid[0:64, 0:128]
    grey = x * 400 + y * 100
    grey[(x - 64) ** 2 + (y - 32) ** 2 < 400] = 65535
    Image.fromarray(grey.astype(np.uint16)).save(HERE / "grey16.png", optimize=True)


def graphic():
    """Hard edges, thin lines, flat colour and strokes of the size of text: what lossy coding finds hard."""
    image = Image.new("RGB", (320, 200), (250, 250, 248))
    draw = ImageDraw.Draw(image)
    draw.rectangle((0, 0, 319, 23), fill=(32, 58, 96))
    for k, colour in enumerate([(204, 51, 51), (51, 153, 85), (51, 102, 204), (238, 170, 34)]):
        draw.rectangle((20 + 36 * k, 180 - 18 * (k + 1), 44 + 36 * k, 180), fill=colour)
    draw.line((12, 181, 170, 181), fill=(0, 0, 0))
    draw.ellipse((200, 40, 300, 140), outline=(0, 0, 0), width=1)
    for k in range(0, 100, 4):
        draw.line((200, 150 + k // 2, 300 - k, 150 + k // 2), fill=(180, 0, 120))
    strokes = np.random.default_rng(7)
    for row in range(5):
        x = 12
        while x < 180:
            for _ in range(3):
                (x0, x1), (y0, y1) = strokes.integers(0, 6, 2), strokes.integers(0, 9, 2)
                draw.line((x + x0, 34 + 11 * row + y0, x + x1, 34 + 11 * row + y1), fill=(20, 20, 20))
            x += 7 if strokes.random() < 0.8 else 13
    image.save(HERE / "graphic.png", optimize=True)


def animation():
    """Six frames of a square that moves over a clear ground: each frame is cleared before the next, 80 ms, for ever."""
    frames = []
    for k in range(6):
        frame = Image.new("RGBA", (64, 48), (0, 0, 0, 0))
        draw = ImageDraw.Draw(frame)
        draw.rectangle((4 + 8 * k, 8 + 3 * k, 19 + 8 * k, 23 + 3 * k), fill=(220, 40 + 30 * k, 60, 255))
        frames.append(frame)
    frames[0].save(HERE / "animated.gif", save_all=True, append_images=frames[1:], duration=80, loop=0, disposal=2)


def bitmaps():
    """The same 37 x 21 picture as BMP: 24 bits bottom-up, 8 bits with a palette, 32 bits with alpha."""
    y, x = np.mgrid[0:21, 0:37]
    rgb = np.stack([x * 6, y * 12, (x + y) * 4], axis=2).astype(np.uint8)
    image = Image.fromarray(rgb, "RGB")
    image.save(HERE / "rgb24.bmp")
    image.quantize(32, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(HERE / "palette8.bmp")
    alpha = (255 - y * 12).astype(np.uint8)
    (HERE / "rgba32.bmp").write_bytes(bitmap_v4(np.dstack([rgb, alpha])))


def bitmap_v4(rgba):
    """A BMP whose BITMAPV4HEADER names an alpha mask: Pillow writes 32-bit files without one."""
    height, width, _ = rgba.shape
    pixels = rgba[::-1, :, [2, 1, 0, 3]].tobytes()
    masks = struct.pack("<4I", 0x00FF0000, 0x0000FF00, 0x000000FF, 0xFF000000)
    header = struct.pack("<IiiHHIIiiII", 108, width, height, 1, 32, 3, len(pixels), 2835, 2835, 0, 0)
    header += masks + b"BGRs" + bytes(48)
    offset = 14 + len(header)
    return struct.pack("<2sIHHI", b"BM", offset + len(pixels), 0, 0, offset) + header + pixels


def rotated():
    """Upright 40 x 60 with red on top and blue at the bottom, stored lying with EXIF orientation 6."""
    upright = np.zeros((60, 40, 3), np.uint8)
    upright[:30] = (230, 30, 30)
    upright[30:] = (30, 30, 230)
    # Orientation 6: the viewer turns the stored picture clockwise by 90 degrees.
    stored = Image.fromarray(upright, "RGB").transpose(Image.Transpose.ROTATE_90)
    exif = Image.Exif()
    exif[0x0112] = 6
    stored.save(HERE / "rotated.jpg", quality=92, exif=exif)


if __name__ == "__main__":
    main()
