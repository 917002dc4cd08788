#!/usr/bin/env python3
"""Makes the files of this folder, and expected.tsv: what a colour-managed viewer shows of each.

The expected pixels come from the numbers below and from colour arithmetic in double precision, never from a decoder.
Pillow serves as the JPEG encoder alone (python3 -m pip install pillow; then python3 make.py).
"""

import io
import math
import struct
import zlib
from pathlib import Path

from PIL import Image

HERE = Path(__file__).parent
WIDTH, HEIGHT = 4, 2
# Eight colours, as stored in most files.
STORED = [(255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255),
          (200, 100, 50), (40, 80, 160), (128, 128, 128), (0, 0, 0)]
EXPECTED = {}

# ---- colour ------------------------------------------------------------------------------------------------------

D65, D50 = (0.3127, 0.3290), (0.34567, 0.35850)
SRGB = [D65, (0.64, 0.33), (0.30, 0.60), (0.15, 0.06)]
P3 = [D65, (0.680, 0.320), (0.265, 0.690), (0.150, 0.060)]
ADOBE = [D65, (0.64, 0.33), (0.21, 0.71), (0.15, 0.06)]
PROPHOTO = [D50, (0.7347, 0.2653), (0.1596, 0.8404), (0.0366, 0.0001)]
BRADFORD = [[0.8951, 0.2664, -0.1614], [-0.7502, 1.7135, 0.0367], [0.0389, -0.0685, 1.0296]]


def multiply(a, b):
    return [[sum(a[i][k] * b[k][j] for k in range(3)) for j in range(len(b[0]))] for i in range(3)]


def inverse(m):
    (a, b, c), (d, e, f), (g, h, i) = m
    det = a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)
    return [[(e * i - f * h) / det, (c * h - b * i) / det, (b * f - c * e) / det],
            [(f * g - d * i) / det, (a * i - c * g) / det, (c * d - a * f) / det],
            [(d * h - e * g) / det, (b * g - a * h) / det, (a * e - b * d) / det]]


def xyz(point):
    x, y = point
    return [[x / y], [1.0], [(1 - x - y) / y]]


def adapt(white, to):
    """Bradford."""
    source, target = multiply(BRADFORD, xyz(white)), multiply(BRADFORD, xyz(to))
    scale = [[target[i][0] / source[i][0] if i == j else 0.0 for j in range(3)] for i in range(3)]
    return multiply(inverse(BRADFORD), multiply(scale, BRADFORD))


def to_xyz_d50(points):
    white, *primaries = points
    columns = [xyz(p) for p in primaries]
    matrix = [[columns[j][i][0] for j in range(3)] for i in range(3)]
    sums = multiply(inverse(matrix), xyz(white))
    matrix = [[matrix[i][j] * sums[j][0] for j in range(3)] for i in range(3)]
    return multiply(adapt(white, D50), matrix)


def srgb_to_linear(v):
    return v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4


def linear_to_srgb(v):
    v = min(max(v, 0.0), 1.0)
    return 12.92 * v if v <= 0.0031308 else 1.055 * v ** (1 / 2.4) - 0.055


def from_xyz_d50(colour):
    linear = multiply(inverse(to_xyz_d50(SRGB)), colour)
    return tuple(round(255 * linear_to_srgb(v[0])) for v in linear)


def convert(points, curve):
    """From a space of these points and this curve to sRGB."""
    def one(colour):
        linear = [[curve(v / 255)] for v in colour]
        return from_xyz_d50(multiply(to_xyz_d50(points), linear))
    return one


def power(exponent):
    return lambda v: v ** exponent


# ---- ICC profiles (ICC.1:2010, version 2) ---------------------------------------------------------------------------

def s15(v):
    return struct.pack('>i', round(v * 65536))


def icc(space, tags, connection=b'XYZ ', kind=b'mntr'):
    table, data, at = struct.pack('>I', len(tags)), b'', 128 + 4 + 12 * len(tags)
    for name, value in tags:
        value += b'\0' * (-len(value) % 4)
        table += name + struct.pack('>II', at + len(data), len(value))
        data += value
    header = struct.pack('>I4sI4s4s4s', 128 + len(table) + len(data), b'\0\0\0\0', 0x02100000, kind, space, connection)
    header += struct.pack('>6H', 2026, 1, 1, 0, 0, 0) + b'acsp' + b'\0' * 28
    header += s15(0.9642) + s15(1.0) + s15(0.8249)
    return header.ljust(128, b'\0') + table + data


def curve_tag(exponent):
    return b'curv\0\0\0\0' + struct.pack('>IH', 1, round(exponent * 256))


def xyz_tag(x, y, z):
    return b'XYZ \0\0\0\0' + s15(x) + s15(y) + s15(z)


def text_tag(text):
    return b'desc\0\0\0\0' + struct.pack('>I', len(text) + 1) + text + b'\0' + b'\0' * 78


def matrix_profile(points, exponent, order=(0, 1, 2)):
    matrix = to_xyz_d50(points)
    tags = [(b'desc', text_tag(b'made up')), (b'wtpt', xyz_tag(0.9642, 1.0, 0.8249))]
    for name, column in zip((b'rXYZ', b'gXYZ', b'bXYZ'), order):
        tags.append((name, xyz_tag(*(matrix[row][column] for row in range(3)))))
    tags += [(name, curve_tag(exponent)) for name in (b'rTRC', b'gTRC', b'bTRC')]
    return icc(b'RGB ', tags)


def grey_profile(exponent):
    return icc(b'GRAY', [(b'desc', text_tag(b'made up')), (b'wtpt', xyz_tag(0.9642, 1.0, 0.8249)),
                         (b'kTRC', curve_tag(exponent))])


def ink_lab(c, m, y, k):
    """Colours of no real ink, at the corners of the cube."""
    lightness = 100 - 25 * c - 30 * m - 10 * y - 30 * k
    return lightness, 40 * m - 30 * c, 60 * y - 40 * c


def ink_profile():
    """lut8: two points an ink, Lab."""
    table = b''
    for corner in range(16):
        inks = [(corner >> bit) & 1 for bit in (3, 2, 1, 0)]
        lightness, a, b = ink_lab(*inks)
        table += bytes([round(lightness * 255 / 100), round(a + 128), round(b + 128)])
    identity = bytes(range(256))
    lut = b'mft1\0\0\0\0' + bytes([4, 3, 2, 0])
    lut += b''.join(s15(float(i == j)) for i in range(3) for j in range(3))
    lut += identity * 4 + table + identity * 3
    return icc(b'CMYK', [(b'desc', text_tag(b'made up')), (b'wtpt', xyz_tag(0.9642, 1.0, 0.8249)), (b'A2B0', lut)],
               connection=b'Lab ', kind=b'prtr')


def lab_to_srgb(lightness, a, b):
    fy = (lightness + 16) / 116
    def f(t):
        return t ** 3 if t > 6 / 29 else 3 * (6 / 29) ** 2 * (t - 4 / 29)
    white = (0.9642, 1.0, 0.8249)
    return from_xyz_d50([[w * f(t)] for w, t in zip(white, (fy + a / 500, fy, fy - b / 200))])


# ---- files ----------------------------------------------------------------------------------------------------------

def chunk(name, data):
    return struct.pack('>I', len(data)) + name + data + struct.pack('>I', zlib.crc32(name + data))


def png(colour_type, depth, rows, before=(), size=(WIDTH, HEIGHT)):
    header = struct.pack('>IIBBBBB', *size, depth, colour_type, 0, 0, 0)
    data = zlib.compress(b''.join(b'\0' + row for row in rows))
    chunks = [chunk(b'IHDR', header), *(chunk(*one) for one in before), chunk(b'IDAT', data), chunk(b'IEND', b'')]
    return b'\x89PNG\r\n\x1a\n' + b''.join(chunks)


def rgb_rows(colours=STORED):
    flat = [bytes(c) for c in colours]
    return [b''.join(flat[:WIDTH]), b''.join(flat[WIDTH:])]


def iccp(profile):
    return b'iCCP', b'made up\0\0' + zlib.compress(profile)


def gama(value):
    return b'gAMA', struct.pack('>I', round(value * 100000))


def chrm(points):
    return b'cHRM', b''.join(struct.pack('>I', round(v * 100000)) for p in points for v in p)


SRGB_CHUNK = (b'sRGB', b'\0')


def cicp(primaries, transfer):
    return b'cICP', bytes([primaries, transfer, 0, 1])


def exif(orientation):
    return b'MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01' + struct.pack('>H', orientation) + b'\0\0\0\0\0\0'


def turned(grid, orientation):
    """The rows as a viewer shows them."""
    rows = [list(row) for row in grid]
    mirror = lambda rows: [row[::-1] for row in rows]
    flip = lambda rows: rows[::-1]
    transpose = lambda rows: [list(row) for row in zip(*rows)]
    return {1: lambda r: r, 2: mirror, 3: lambda r: flip(mirror(r)), 4: flip, 5: transpose,
            6: lambda r: mirror(transpose(r)), 7: lambda r: flip(mirror(transpose(r))),
            8: lambda r: flip(transpose(r))}[orientation](rows)


def add(name, data, colours, tolerance=0, size=(WIDTH, HEIGHT)):
    (HERE / name).write_bytes(data)
    pixels = [(*c, 255)[:4] if len(c) == 3 else c for c in colours]
    assert len(pixels) == size[0] * size[1], name
    EXPECTED[name] = (tolerance, size, pixels)


def refuse(name, data, reason):
    (HERE / name).write_bytes(data)
    EXPECTED[name] = reason


def jpeg(image, segments=(), **options):
    out = io.BytesIO()
    image.save(out, 'JPEG', quality=100, **options)
    data = out.getvalue()
    inserted = b''.join(struct.pack('>BBH', 0xff, marker, len(body) + 2) + body for marker, body in segments)
    return data[:2] + inserted + data[2:]


def blocks(mode, colours):
    """A picture of 4 x 2 flat blocks of 16 x 16 pixels."""
    image = Image.new(mode, (WIDTH * 16, HEIGHT * 16))
    for index, colour in enumerate(colours):
        x, y = index % WIDTH * 16, index // WIDTH * 16
        image.paste(colour, (x, y, x + 16, y + 16))
    return image


def without(data, marker):
    """A JPEG without the segments of this marker."""
    out, at = data[:2], 2
    while data[at + 1] != 0xda:
        length = 2 + struct.unpack('>H', data[at + 2:at + 4])[0]
        if data[at + 1] != marker:
            out += data[at:at + length]
        at += length
    return out + data[at:]


def convert_all(points, curve, colours=STORED):
    return [convert(points, curve)(c) for c in colours]


# ---- colour of PNG, in the order of the specification: cICP, iCCP, sRGB, gAMA and cHRM ----------------------------------

p3, adobe = matrix_profile(P3, 2.2), matrix_profile(ADOBE, 2.19921875)
as_p3 = convert_all(P3, power(2.2))
add('png-plain.png', png(2, 8, rgb_rows()), STORED)
add('png-iccp-p3.png', png(2, 8, rgb_rows(), [iccp(p3)]), as_p3, 1)
add('png-iccp-adobe.png', png(2, 8, rgb_rows(), [iccp(adobe)]), convert_all(ADOBE, power(2.19921875)), 1)
add('png-iccp-prophoto.png', png(2, 8, rgb_rows(), [iccp(matrix_profile(PROPHOTO, 1.8))]),
    convert_all(PROPHOTO, power(1.8)), 2)
swapped = [convert(SRGB, power(2.2))((b, r, g)) for r, g, b in STORED]
add('png-iccp-swapped.png', png(2, 8, rgb_rows(), [iccp(matrix_profile(SRGB, 2.2, order=(1, 2, 0)))]), swapped, 1)
add('png-iccp-broken.png', png(2, 8, rgb_rows(), [iccp(p3[:150])]), STORED)
add('png-iccp-for-grey.png', png(2, 8, rgb_rows(), [iccp(grey_profile(1.0))]), STORED)
add('png-srgb-over-gama.png', png(2, 8, rgb_rows(), [SRGB_CHUNK, gama(1.0), chrm(P3)]), STORED)
add('png-iccp-over-gama.png', png(2, 8, rgb_rows(), [gama(1.0), iccp(p3)]), as_p3, 1)
add('png-cicp-p3.png', png(2, 8, rgb_rows(), [cicp(12, 13)]), convert_all(P3, srgb_to_linear), 1)
add('png-cicp-over-iccp.png', png(2, 8, rgb_rows(), [cicp(12, 13), iccp(adobe)]), convert_all(P3, srgb_to_linear), 1)
add('png-cicp-srgb.png', png(2, 8, rgb_rows(), [cicp(1, 13), gama(1.0)]), STORED)
add('png-gama-linear.png', png(2, 8, rgb_rows(), [gama(1.0)]), convert_all(SRGB, power(1.0)), 1)
add('png-gama-of-srgb.png', png(2, 8, rgb_rows(), [gama(0.45455)]), STORED)
add('png-gama-chrm.png', png(2, 8, rgb_rows(), [gama(1 / 1.8), chrm(ADOBE)]), convert_all(ADOBE, power(1.8)), 1)
add('png-chrm-alone.png', png(2, 8, rgb_rows(), [chrm(P3)]), convert_all(P3, srgb_to_linear), 1)
add('png-gama-zero.png', png(2, 8, rgb_rows(), [gama(0)]), STORED)
greys = [0, 30, 60, 90, 120, 180, 220, 255]
grey_rows = [bytes(greys[:WIDTH]), bytes(greys[WIDTH:])]
neutral = [(g,) * 3 for g in greys]
add('png-grey-iccp.png', png(0, 8, grey_rows, [iccp(grey_profile(1.0))]), convert_all(SRGB, power(1.0), neutral), 1)
add('png-grey-gama.png', png(0, 8, grey_rows, [gama(1 / 1.8)]), convert_all(SRGB, power(1.8), neutral), 1)
add('png-grey-rgb-profile.png', png(0, 8, grey_rows, [iccp(p3)]), convert_all(P3, power(2.2), neutral), 1)
alphas = [255, 0, 128, 64, 255, 1, 254, 200]
rgba = [c + (a,) for c, a in zip(STORED, alphas)]
add('png-rgba-iccp.png', png(6, 8, rgb_rows(rgba), [iccp(p3)]), [c + (a,) for c, a in zip(as_p3, alphas)], 1)

# ---- high dynamic range (BT.2100), for a white of 203 cd/m2 by the roll-off of BT.2390 ----------------------------------

BT2020 = [D65, (0.708, 0.292), (0.170, 0.797), (0.131, 0.046)]


def pq_to_light(v):
    n = v ** (1 / 78.84375)
    return 10000 * (max(n - 0.8359375, 0) / (18.8515625 - 18.6875 * n)) ** (1 / 0.1593017578125)


def light_to_pq(light):
    n = (light / 10000) ** 0.1593017578125
    return ((0.8359375 + 18.8515625 * n) / (1 + 18.6875 * n)) ** 78.84375


def hlg_to_light(colour):
    scene = [v * v / 3 if v <= 0.5 else (math.exp((v - 0.55991073) / 0.17883277) + 0.28466892) / 12 for v in colour]
    luminance = 0.2627 * scene[0] + 0.6780 * scene[1] + 0.0593 * scene[2]
    return [1000 * luminance ** 0.2 * v for v in scene]


def rolled_off(light):
    """BT.2390-10, 5.4.1."""
    white, peak = light_to_pq(203), light_to_pq(1000)
    e, most = min(light_to_pq(light) / peak, 1), white / peak
    start = 1.5 * most - 0.5
    if e >= start:
        t = (e - start) / (1 - start)
        e = ((2 * t ** 3 - 3 * t ** 2 + 1) * start + (t ** 3 - 2 * t ** 2 + t) * (1 - start)
             + (-2 * t ** 3 + 3 * t ** 2) * most)
    return pq_to_light(e * peak)


def shown_high_range(light, points):
    """Of cd/m2 of each primary."""
    most = max(light)
    scale = rolled_off(most) / most / 203 if most else 0
    return from_xyz_d50(multiply(to_xyz_d50(points), [[v * scale] for v in light]))


lights = [(0, 0, 0), (20, 20, 20), (203, 203, 203), (1000, 1000, 1000), (400, 100, 20), (5, 60, 8), (4000, 300, 100), (90, 80, 70)]
as_pq = [[round(65535 * light_to_pq(v)) for v in c] for c in lights]
as_light = [[pq_to_light(v / 65535) for v in c] for c in as_pq]
as_hlg = [[round(65535 * v) for v in c] for c in
          [(0, 0, 0), (0.25,) * 3, (0.5,) * 3, (0.75,) * 3, (1, 1, 1), (0.8, 0.4, 0.2), (0.1, 0.6, 0.3), (0.9, 0.85, 0.2)]]
deep_rows = lambda colours: [struct.pack('>12H', *(v for c in row for v in c)) for row in (colours[:WIDTH], colours[WIDTH:])]
for primaries, points in [(9, BT2020), (12, P3)]:
    add(f'png-cicp-pq-{primaries}.png', png(2, 16, deep_rows(as_pq), [cicp(primaries, 16)]),
        [shown_high_range(c, points) for c in as_light], 1)
add('png-cicp-hlg.png', png(2, 16, deep_rows(as_hlg), [cicp(9, 18)]),
    [shown_high_range(hlg_to_light([v / 65535 for v in c]), BT2020) for c in as_hlg], 1)
eight = [tuple(v // 257 for v in c) for c in as_pq]
add('png-cicp-pq-8-bit.png', png(2, 8, rgb_rows(eight), [cicp(9, 16)]),
    [shown_high_range([pq_to_light(v / 255) for v in c], BT2020) for c in eight], 1)

# ---- depth and transparency of PNG ----------------------------------------------------------------------------------------

deep = [0, 0x0080, 0x0081, 0x7f7f, 0x8080, 0xfe7e, 0xfeff, 0xffff]
rounded = [(round(v / 257),) * 3 for v in deep]
packed = [struct.pack('>4H', *deep[:4]), struct.pack('>4H', *deep[4:])]
add('png-grey-16.png', png(0, 16, packed), rounded)
# All levels of sRGB in linear light, which 8 bits do not tell apart in the shadows: each has to come out again.
levels = list(range(256))
light = [round(65535 * srgb_to_linear(v / 255)) for v in levels]
as_rows = lambda samples: [struct.pack(f'>{len(samples) // 16}H', *samples[at:at + len(samples) // 16])
                           for at in range(0, len(samples), len(samples) // 16)]
all_levels = [(v,) * 3 for v in levels]
for name, colour_type, samples, space in [
        ('png-gama-linear-16.png', 2, [v for v in light for _ in range(3)], gama(1.0)),
        ('png-cicp-linear-16.png', 2, [v for v in light for _ in range(3)], cicp(1, 8)),
        ('png-grey-gama-16.png', 0, light, gama(1.0)),
        ('png-grey-iccp-16.png', 0, light, iccp(grey_profile(1.0)))]:
    add(name, png(colour_type, 16, as_rows(samples), [space], (16, 16)), all_levels, size=(16, 16))
wide = [struct.pack('>16H', *(v * 257 for c in row for v in c)) for row in (rgba[:WIDTH], rgba[WIDTH:])]
add('png-rgba-iccp-16.png', png(6, 16, wide, [iccp(p3)]), [c + (a,) for c, a in zip(as_p3, alphas)], 1)
palette = b''.join(bytes(c) for c in STORED)
add('png-palette.png', png(3, 4, [b'\x01\x23', b'\x45\x67'], [(b'PLTE', palette)]), STORED)
add('png-palette-trns.png', png(3, 8, [bytes(range(4)), bytes(range(4, 8))], [(b'PLTE', palette), (b'tRNS', bytes(alphas))]),
    rgba)
add('png-rgb-trns.png', png(2, 8, rgb_rows(), [(b'tRNS', struct.pack('>3H', *STORED[4]))]),
    [c + (0 if i == 4 else 255,) for i, c in enumerate(STORED)])

# ---- orientation ------------------------------------------------------------------------------------------------------------

grid = [STORED[:WIDTH], STORED[WIDTH:]]
flat = blocks('RGB', STORED)
for orientation in range(1, 9):
    shown = turned(grid, orientation)
    size, pixels = (len(shown[0]), len(shown)), [c for row in shown for c in row]
    data = png(2, 8, rgb_rows(), [(b'eXIf', exif(orientation))])
    add(f'png-orientation-{orientation}.png', data, pixels, size=size)
    data = jpeg(flat, [(0xe1, b'Exif\0\0' + exif(orientation))], subsampling=0)
    add(f'jpeg-orientation-{orientation}.jpg', data, pixels, 2, size)
add('jpeg-orientation-9.jpg', jpeg(flat, [(0xe1, b'Exif\0\0' + exif(9))], subsampling=0), STORED, 2)
add('jpeg-exif-cut.jpg', jpeg(flat, [(0xe1, b'Exif\0\0' + exif(6)[:20])], subsampling=0), STORED, 2)

# ---- JPEG -------------------------------------------------------------------------------------------------------------------

add('jpeg-444.jpg', jpeg(flat, subsampling=0), STORED, 2)
add('jpeg-422.jpg', jpeg(flat, subsampling=1), STORED, 2)
add('jpeg-420.jpg', jpeg(flat, subsampling=2), STORED, 2)
add('jpeg-progressive.jpg', jpeg(flat, subsampling=2, progressive=True), STORED, 2)
add('jpeg-restarts.jpg', jpeg(flat, subsampling=2, restart_marker_blocks=1), STORED, 2)
add('jpeg-rgb.jpg', jpeg(flat, subsampling=0, keep_rgb=True), STORED, 2)
add('jpeg-grey.jpg', jpeg(blocks('L', greys)), neutral, 2)
# In the dark, an error of 1 grows.
add('jpeg-icc-p3.jpg', jpeg(flat, subsampling=0, icc_profile=p3), as_p3, 5)
add('jpeg-grey-icc.jpg', jpeg(blocks('L', greys), icc_profile=grey_profile(1.0)), convert_all(SRGB, power(1.0), neutral), 8)
# Pillow stores inks inverted with Adobe's marker, and takes them as 255 for full.
inks = [(0, 0, 0, 0), (255, 0, 0, 0), (0, 255, 0, 0), (0, 0, 255, 0),
        (0, 0, 0, 255), (255, 255, 0, 0), (0, 255, 255, 0), (255, 255, 255, 255)]
plain = [tuple(round((255 - v) * (255 - k) / 255) for v in (c, m, y)) for c, m, y, k in inks]
printed = [lab_to_srgb(*ink_lab(*(v // 255 for v in ink))) for ink in inks]
cmyk = blocks('CMYK', inks)
add('jpeg-cmyk-adobe.jpg', jpeg(cmyk), plain, 2)
add('jpeg-cmyk-unmarked.jpg', without(jpeg(cmyk), 0xee), plain, 2)
add('jpeg-cmyk-icc.jpg', jpeg(cmyk, icc_profile=ink_profile()), printed, 4)
# YCCK: what libjpeg makes of RGB is what Adobe stores for inks that are not inverted; the key stays as it is.
ycc = blocks('RGB', [ink[:3] for ink in inks]).convert('YCbCr').split()
key = blocks('L', [255 - ink[3] for ink in inks])
stored = Image.merge('CMYK', [Image.eval(plane, lambda v: 255 - v) for plane in (*ycc, key)])
ycck = bytearray(jpeg(stored))
at = ycck.index(b'Adobe')
ycck[at + 11] = 2
add('jpeg-ycck-adobe.jpg', bytes(ycck), plain, 3)
twelve = bytearray(jpeg(flat, subsampling=0))
at = twelve.index(b'\xff\xc0')
twelve[at + 1], twelve[at + 4] = 0xc1, 12
refuse('jpeg-12-bit.jpg', bytes(twelve), '8 bits')
arithmetic = bytearray(jpeg(flat, subsampling=0))
arithmetic[arithmetic.index(b'\xff\xc0') + 1] = 0xc9
refuse('jpeg-arithmetic.jpg', bytes(arithmetic), 'arithmetic')

# ---- expected -----------------------------------------------------------------------------------------------------------------

with open(HERE / 'expected.tsv', 'w') as out:
    out.write('# file\ttolerance\tsize\tred, green, blue and alpha of each cell, or: refused, and a word of the reason\n')
    for name, expected in sorted(EXPECTED.items()):
        if isinstance(expected, str):
            out.write(f'{name}\trefused\t{expected}\n')
            continue
        tolerance, (width, height), pixels = expected
        text = ' '.join(bytes(p).hex() for p in pixels)
        out.write(f'{name}\t{tolerance}\t{width}x{height}\t{text}\n')
