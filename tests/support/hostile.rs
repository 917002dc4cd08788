//! Files made to hurt whoever decodes them, written out byte by byte, since no honest encoder
//! would.

/// A chunk of a PNG (PNG 5.3).
pub fn chunk(kind: [u8; 4], data: &[u8]) -> Vec<u8> {
    let checked = [&kind[..], data].concat();
    let length = (data.len() as u32).to_be_bytes();
    let crc = crc32fast::hash(&checked).to_be_bytes();
    [&length[..], &checked, &crc].concat()
}

/// A PNG of these chunks between its signature and its end.
pub fn png(chunks: &[Vec<u8>]) -> Vec<u8> {
    [
        &b"\x89PNG\r\n\x1a\n"[..],
        &chunks.concat(),
        &chunk(*b"IEND", b""),
    ]
    .concat()
}

/// The header of 8-bit RGB, interlaced or not.
pub fn ihdr(width: u32, height: u32, interlaced: bool) -> Vec<u8> {
    let size = [width.to_be_bytes(), height.to_be_bytes()].concat();
    chunk(
        *b"IHDR",
        &[&size[..], &[8, 2, 0, 0, u8::from(interlaced)]].concat(),
    )
}

/// Some 1000 times smaller than the zeros that it inflates to, at least `count` (RFC 1950): the
/// data of a gray picture.
pub fn deflated_zeros(count: usize) -> Vec<u8> {
    let width = 1 << 14;
    let height = count.div_ceil(width + 1);
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width as u32, height as u32);
    encoder.set_filter(png::Filter::NoFilter);
    encoder
        .write_header()
        .and_then(|mut writer| writer.write_image_data(&vec![0; width * height]))
        .expect("a Vec takes all");
    let mut zlib = Vec::new();
    let mut rest = &file[8..];
    while let Some((length, data)) = rest.split_first_chunk() {
        let length = u32::from_be_bytes(*length) as usize;
        if data.starts_with(b"IDAT") {
            zlib.extend(&data[4..4 + length]);
        }
        rest = data.get(length + 8..).unwrap_or_default();
    }
    zlib
}

/// A marker segment of a JPEG.
pub fn segment(marker: u8, data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u16 + 2).to_be_bytes();
    [&[0xff, marker], &length[..], data].concat()
}

/// The marker that a JPEG ends with.
pub const END_OF_IMAGE: [u8; 2] = [0xff, 0xd9];

/// A JPEG up to its first scan: three components of one 8 by 8 block a unit, all quantizers 1. Of
/// the codes for DC, 0000 is no change, as is 0001 with a bit. For AC there is one code of one bit:
/// the end of a block in a baseline file, and of a progressive one the end of 16384 blocks and as
/// many more as the next 14 bits say.
pub fn jpeg_head(width: u16, height: u16, progressive: bool) -> Vec<u8> {
    let mut file = vec![0xff, 0xd8];
    file.extend(segment(0xdb, &[&[0][..], &[1; 64]].concat()));
    let [height, width] = [height, width].map(u16::to_be_bytes);
    let components = [1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0];
    let frame = [
        &[8, height[0], height[1], width[0], width[1], 3][..],
        &components,
    ];
    file.extend(segment(
        if progressive { 0xc2 } else { 0xc0 },
        &frame.concat(),
    ));
    let mut dc = vec![0, 0, 0, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    dc.extend(0..12);
    file.extend(segment(0xc4, &dc));
    let mut ac = vec![0x10, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    ac.push(if progressive { 0xe0 } else { 0 });
    file.extend(segment(0xc4, &ac));
    file
}

/// A baseline scan of all three components, its data still to come.
pub fn baseline_scan() -> Vec<u8> {
    segment(0xda, &[3, 1, 0, 2, 0, 3, 0, 0, 63, 0])
}

/// The first scan of a progressive file with the DC of all `blocks` of each component: no change.
pub fn first_scan(blocks: usize) -> Vec<u8> {
    let mut scan = segment(0xda, &[3, 1, 0, 2, 0, 3, 0, 0, 0, 0]);
    scan.resize(scan.len() + (blocks * 3).div_ceil(2), 0);
    scan
}

/// A scan that says of one coefficient of all `blocks` of one component that it is zero, in a few
/// bytes.
pub fn empty_scan(component: u8, coefficient: u8, blocks: usize) -> Vec<u8> {
    let mut scan = segment(0xda, &[1, component, 0, coefficient, coefficient, 0]);
    let runs = blocks.div_ceil(32767);
    let bits = (0..runs * 15).map(|bit| bit % 15 != 0);
    let mut bits: Vec<bool> = bits.collect();
    bits.resize(bits.len().next_multiple_of(8), true);
    for byte in bits.chunks(8) {
        let byte = byte
            .iter()
            .fold(0u8, |byte, &bit| byte << 1 | u8::from(bit));
        scan.push(byte);
        if byte == 0xff {
            scan.push(0);
        }
    }
    scan
}

/// A progressive JPEG of a few KB with 91 scans over all its blocks.
pub fn scans_of_runs(width: u16, height: u16) -> Vec<u8> {
    let blocks = usize::from(width).div_ceil(8) * usize::from(height).div_ceil(8);
    let mut file = jpeg_head(width, height, true);
    // As much DC data as its reader has to see; the blocks after it are gray.
    file.extend(first_scan(blocks.min(64)));
    for component in 1..=3 {
        for coefficient in 1..=30 {
            file.extend(empty_scan(component, coefficient, blocks));
        }
    }
    file.extend(END_OF_IMAGE);
    file
}

/// A GIF up to its first image, with two colors.
pub fn gif_head(width: u16, height: u16) -> Vec<u8> {
    let [width, height] = [width, height].map(u16::to_le_bytes);
    [
        b"GIF89a",
        &width[..],
        &height,
        &[0x80, 0, 0],
        &[0, 0, 0, 255, 255, 255],
    ]
    .concat()
}

/// An image of a GIF, all of its pixels the first color: LZW gets up to 3839 of them from 12 bits.
pub fn gif_image(width: u16, height: u16) -> Vec<u8> {
    let mut image = vec![b',', 0, 0, 0, 0];
    image.extend([width.to_le_bytes(), height.to_le_bytes()].concat());
    image.extend([0, 8]);
    let mut data = Vec::new();
    let (mut bits, mut count) = (0u32, 0);
    let mut write = |code: u32, size: u32| {
        bits |= code << count;
        count += size;
        while count >= 8 {
            data.push(bits as u8);
            (bits, count) = (bits >> 8, count - 8);
        }
    };
    write(256, 9);
    write(0, 9);
    // Code 258 + n is n + 2 pixels, and each is first used before it is known.
    let pixels = u64::from(width) * u64::from(height);
    let (mut done, mut code) = (1, 258u32);
    while done < pixels {
        let size = (code.min(4095) + 1)
            .next_power_of_two()
            .ilog2()
            .clamp(9, 12);
        write(code.min(4095), size);
        done += u64::from(code.min(4095) - 256);
        code += 1;
    }
    write(
        257,
        12.min((code.min(4095) + 1).next_power_of_two().ilog2().max(9)),
    );
    write(0, 8);
    for block in data.chunks(255) {
        image.push(block.len() as u8);
        image.extend(block);
    }
    image.push(0);
    image
}

/// A bitmap of 256 grays with run lengths of 8 bits.
pub fn run_length_bmp(width: i32, height: i32, runs: &[u8]) -> Vec<u8> {
    let palette: Vec<u8> = (0..=255)
        .flat_map(|level| [level, level, level, 0])
        .collect();
    let offset = 54 + palette.len() as u32;
    let mut file = b"BM".to_vec();
    let words = [offset + runs.len() as u32, 0, offset, 40];
    file.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    file.extend(
        [width, height, 1 | 8 << 16, 1]
            .iter()
            .flat_map(|word| word.to_le_bytes()),
    );
    file.extend(
        [0, 0, 0, 256u32, 0]
            .iter()
            .flat_map(|word| word.to_le_bytes()),
    );
    [file, palette, runs.to_vec()].concat()
}

/// A baseline JPEG of one flat color, by the sampling factors of its components and by the
/// components that each scan holds.
pub fn flat_jpeg((width, height): (u16, u16), factors: &[u8], scans: &[&[u8]]) -> Vec<u8> {
    let mut file = vec![0xff, 0xd8];
    file.extend(segment(0xdb, &[&[0][..], &[1; 64]].concat()));
    let [h, w] = [height, width].map(u16::to_be_bytes);
    let mut frame = vec![8, h[0], h[1], w[0], w[1], factors.len() as u8];
    frame.extend((1..).zip(factors).flat_map(|(id, &pair)| [id, pair, 0]));
    file.extend(segment(0xc0, &frame));
    // The one code for DC is 0, no change; and that for AC is 0, the end of the block.
    for class in [0, 0x10] {
        let mut table = vec![class, 1];
        table.extend([0; 16]);
        file.extend(segment(0xc4, &table));
    }
    let across = |factor: u8| usize::from(factor >> 4);
    let down = |factor: u8| usize::from(factor & 15);
    let most = |side: &dyn Fn(u8) -> usize| factors.iter().map(|&pair| side(pair)).max();
    let (most_across, most_down) = (most(&across).unwrap_or(1), most(&down).unwrap_or(1));
    let units =
        usize::from(width).div_ceil(8 * most_across) * usize::from(height).div_ceil(8 * most_down);
    for scan in scans {
        let mut header = vec![scan.len() as u8];
        header.extend(scan.iter().flat_map(|component| [component + 1, 0]));
        header.extend([0, 63, 0]);
        file.extend(segment(0xda, &header));
        let pairs = scan
            .iter()
            .map(|&component| factors[usize::from(component)]);
        let blocks: usize = match *scan {
            &[component] => {
                let pair = factors[usize::from(component)];
                let side = |side: u16, factor: usize, most: usize| {
                    (usize::from(side) * factor).div_ceil(most).div_ceil(8)
                };
                side(width, across(pair), most_across) * side(height, down(pair), most_down)
            }
            _ => units * pairs.map(|pair| across(pair) * down(pair)).sum::<usize>(),
        };
        file.resize(file.len() + (blocks * 2).div_ceil(8), 0);
    }
    file.extend(END_OF_IMAGE);
    file
}

/// A JPEG of four inks in a scan each. FF 00 begins what a careless reader takes for a segment:
/// behind it stands the header of a scan of all four, of which no coefficients would have to be
/// kept.
pub fn jpeg_with_concealed_scans(width: u16, height: u16) -> Vec<u8> {
    let mut file = flat_jpeg((width, height), &[0x11; 4], &[&[0], &[1], &[2], &[3]]);
    let first = file.windows(2).position(|pair| pair == [0xff, 0xda]);
    let first = first.expect("it has four scans");
    let header = segment(0xda, &[1, 1, 0, 0, 63, 0]);
    let length = (header.len() as u16 + 2).to_be_bytes();
    let all = segment(0xda, &[4, 1, 0, 2, 0, 3, 0, 4, 0, 0, 63, 0]);
    let hiding = [&[0xff, 0][..], &length, &header, &all].concat();
    file.splice(first..first, hiding);
    file
}

/// A GIF whose screen and first frame have one pixel, and whose second frame has this size.
pub fn gif_beyond_its_screen(width: u16, height: u16) -> Vec<u8> {
    let mut file = gif_head(1, 1);
    file.extend(gif_image(1, 1));
    file.extend(gif_image(width, height));
    file.push(b';');
    file
}

/// A GIF of one pixel with an XMP packet and an ICC profile of so many bytes each.
pub fn gif_with_extensions(bytes: usize) -> Vec<u8> {
    let mut file = gif_head(1, 1);
    for name in [b"XMP DataXMP", b"ICCRGBG1012"] {
        file.extend([&b"!\xff\x0b"[..], name].concat());
        file.extend([&[255][..], &[7; 255]].concat().repeat(bytes / 256));
        file.push(0);
    }
    file.extend(gif_image(1, 1));
    file.push(b';');
    file
}

/// A BMP of one pixel with an ICC profile of so many bytes.
pub fn bmp_with_profile(bytes: usize) -> Vec<u8> {
    let mut header = 124u32.to_le_bytes().to_vec();
    header.extend([1u32, 1, 1 | 24 << 16].map(u32::to_le_bytes).concat());
    header.resize(56, 0);
    header.extend(b"DEBM");
    header.resize(112, 0);
    header.extend([128, bytes as u32, 0].map(u32::to_le_bytes).concat());
    let size = (14 + 128 + bytes) as u32;
    let front = [
        b"BM",
        &size.to_le_bytes()[..],
        &[0; 4],
        &138u32.to_le_bytes(),
    ];
    [&front.concat(), &header, &[3, 2, 1, 0][..], &vec![7; bytes]].concat()
}
