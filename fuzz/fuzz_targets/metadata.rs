//! Exif, XMP and image resources in whole files. Whatever they hold, the picture is read, turned as
//! Exif says; what is kept is not longer than it may be, and in another file it is kept as it is,
//! beside pixels that are not turned.

#![cfg_attr(fuzzing, no_main)]

use fuzz::tiff::{Field, Order};
use libfuzzer_sys::arbitrary::{self, Arbitrary, Unstructured};
use libfuzzer_sys::fuzz_target;
use png::chunk::ChunkType;
use std::fmt::Write as _;
use std::sync::OnceLock;
use towebp_encoder::{ColorType, Encoder, Picture, Workers};
use towebp_pipeline::conversion::Cancel;
use towebp_pipeline::image::{self, Format, Image, Keep, Limits, Metadata};

fuzz_target!(|input: Input| input.check());

#[derive(Arbitrary, Debug)]
struct Input {
    container: Container,
    parts: Vec<Part>,
}

#[derive(Arbitrary, Clone, Copy, Debug, PartialEq)]
enum Container {
    Jpeg,
    Png,
    Webp,
    Gif,
    Tiff,
}

#[derive(Arbitrary, Debug)]
enum Part {
    Exif(Exif),
    Xmp(Xmp),
    /// Image resources of Photoshop, and bytes behind them.
    Resources(Vec<Resource>, Vec<u8>),
}

#[derive(Arbitrary, Debug)]
enum Exif {
    Directory {
        has_prefix: bool,
        order: Order,
        entries: Vec<Entry>,
        /// The bytes that its end lacks.
        cut: u8,
    },
    Bytes(Vec<u8>),
}

#[derive(Arbitrary, Debug)]
enum Entry {
    Orientation(u16),
    Artist(Text),
    Copyright(Text),
    Other {
        tag: u16,
        kind: u16,
        count: u32,
        value: [u8; 4],
    },
}

#[derive(Arbitrary, Debug)]
enum Xmp {
    /// A description with these attributes, and what is in it.
    Packet {
        /// The namespace that has another name.
        foreign: Option<u8>,
        attributes: Vec<(u8, Text)>,
        nodes: Vec<Node>,
    },
    Bytes(Vec<u8>),
}

#[derive(Arbitrary, Debug)]
enum Node {
    Open(u8, Vec<(u8, Text)>),
    Empty(u8, Vec<(u8, Text)>),
    Close,
    Text(Text),
    Data(Text),
    Comment(Text),
    Markup(Vec<u8>),
}

#[derive(Arbitrary, Debug)]
struct Resource {
    /// The number, if it is not that of IPTC.
    number: Option<u16>,
    name: Vec<u8>,
    sets: Vec<DataSet>,
    behind: Vec<u8>,
}

#[derive(Arbitrary, Debug)]
enum DataSet {
    /// Of UTF-8.
    Charset,
    Creator(Text),
    Credit(Text),
    Notice(Vec<u8>),
    Other(u8, u8, Vec<u8>),
}

/// The names of elements and attributes.
const NAMES: [&str; 30] = [
    "n0:RDF",
    "n0:Description",
    "n0:li",
    "n0:resource",
    "n0:Seq",
    "n0:Bag",
    "n0:Alt",
    "n0:parseType",
    "n1:creator",
    "n1:rights",
    "n1:title",
    "n2:Marked",
    "n2:Owner",
    "n2:UsageTerms",
    "n2:WebStatement",
    "n2:Certificate",
    "n3:license",
    "n3:attributionName",
    "n3:attributionURL",
    "n4:CopyrightOwner",
    "n4:CopyrightOwnerName",
    "n4:Licensor",
    "n4:LicensorName",
    "n4:LicensorURL",
    "n4:TermsAndConditionsText",
    "n4:TermsAndConditionsURL",
    "n4:DataMining",
    "n5:Credit",
    "tiff:Orientation",
    "xml:lang",
];

/// The namespaces, each behind its prefix.
const NAMESPACES: [(&str, &str); 7] = [
    ("n0", "http://www.w3.org/1999/02/22-rdf-syntax-ns#"),
    ("n1", "http://purl.org/dc/elements/1.1/"),
    ("n2", "http://ns.adobe.com/xap/1.0/rights/"),
    ("n3", "http://creativecommons.org/ns#"),
    ("n4", "http://ns.useplus.org/ldf/xmp/1.0/"),
    ("n5", "http://ns.adobe.com/photoshop/1.0/"),
    ("tiff", "http://ns.adobe.com/tiff/1.0/"),
];

const WIDTH: u32 = 5;
const HEIGHT: u32 = 3;

impl Input {
    fn check(&self) {
        let container = self.container;
        let parts: Vec<Bytes> = self.parts.iter().map(Part::bytes).collect();
        let file = container.file(&parts);
        let upright = container.upright();
        let expected = self.orientation();
        for name in ["strip", "copyright", "icc", "keep"] {
            let keep = Keep::parse(name).expect("one of the four");
            let (image, kept) = decode(&file, container.format(), keep);
            let is_expected = match expected {
                Some(number) => is_turned(&image, &upright, number),
                None => (1..=8).any(|number| is_turned(&image, &upright, number)),
            };
            assert!(is_expected, "{name}: it is not turned by {expected:?}");
            let Metadata {
                icc: None,
                exif,
                xmp,
            } = &kept
            else {
                panic!("a profile out of nowhere");
            };
            let lengths = [exif, xmp].map(|part| part.as_ref().map_or(0, Vec::len));
            let most = match name {
                "copyright" => 128 << 10,
                "keep" => file.len(),
                _ => 0,
            };
            assert!(lengths.iter().sum::<usize>() <= most, "{name}: {lengths:?}");
            if kept == Metadata::default() {
                continue;
            }
            let exif = exif.clone().map(|bytes| Bytes::Exif(bytes, None));
            let parts: Vec<Bytes> = exif
                .into_iter()
                .chain(xmp.clone().map(Bytes::Xmp))
                .collect();
            let again = decode(&Container::Webp.file(&parts), Format::Webp, keep);
            assert_eq!(
                again,
                (Container::Webp.upright(), kept),
                "{name}, once more"
            );
        }
    }

    /// The orientation, where it is plain what it is.
    fn orientation(&self) -> Option<u8> {
        let mut exif = self.parts.iter().filter_map(|part| match part {
            Part::Exif(exif) => Some(exif),
            Part::Xmp(_) | Part::Resources(..) => None,
        });
        let first = exif.next().filter(|_| self.container != Container::Gif);
        match (first, exif.next()) {
            (None, _) => Some(1),
            (
                Some(Exif::Directory {
                    entries, cut: 0, ..
                }),
                None,
            ) => {
                let mut numbers = entries.iter().filter_map(|entry| match entry {
                    Entry::Orientation(number) => Some(*number),
                    _ => None,
                });
                let number = numbers.next().unwrap_or(1);
                Some(if (1..=8).contains(&number) {
                    number as u8
                } else {
                    1
                })
            }
            _ => None,
        }
    }
}

fn decode(file: &[u8], format: Format, keep: Keep) -> (Image, Metadata) {
    let never = Cancel::never();
    let opened = image::open(file, format, &Limits::DEFAULT).expect("a good header");
    let decoded = opened.decode(keep, Workers::new(1, None, &never));
    decoded.expect("metadata that is of no use is ignored")
}

/// Whether `image` is `stored`, turned by the orientation of this number (Exif 2.32, 4.6.4).
fn is_turned(image: &Image, stored: &Image, number: u8) -> bool {
    // Whether rows become columns, and whether columns and rows are read from their ends.
    let (swaps, from_right, from_bottom) = match number {
        1 => (false, false, false),
        2 => (false, true, false),
        3 => (false, true, true),
        4 => (false, false, true),
        5 => (true, false, false),
        6 => (true, false, true),
        7 => (true, true, true),
        _ => (true, true, false),
    };
    let (width, height) = (stored.width, stored.height);
    let size = if swaps {
        (height, width)
    } else {
        (width, height)
    };
    let channels = image.layout.channels();
    let pixel = |image: &Image, x: u32, y: u32| {
        let pixel = (y * image.width + x) as usize;
        image.pixels[pixel * channels..][..channels].to_vec()
    };
    let is_same = |x: u32, y: u32| {
        let (column, row) = if swaps { (y, x) } else { (x, y) };
        let column = if from_right {
            width - 1 - column
        } else {
            column
        };
        let row = if from_bottom { height - 1 - row } else { row };
        pixel(image, x, y) == pixel(stored, column, row)
    };
    (image.width, image.height) == size
        && image.layout == stored.layout
        && (0..size.1).all(|y| (0..size.0).all(|x| is_same(x, y)))
}

/// A part as a file has it.
enum Bytes {
    /// Exif, and its order of bytes with the fields that a TIFF has in its own directory.
    Exif(Vec<u8>, Option<(Order, Vec<Field>)>),
    Xmp(Vec<u8>),
    Resources(Vec<u8>),
}

impl Part {
    fn bytes(&self) -> Bytes {
        match self {
            Part::Exif(Exif::Bytes(bytes)) => Bytes::Exif(bytes.clone(), None),
            Part::Exif(Exif::Directory {
                has_prefix,
                order,
                entries,
                cut,
            }) => {
                let fields: Vec<Field> = entries.iter().map(|entry| entry.field(*order)).collect();
                let prefix: &[u8] = if *has_prefix { b"Exif\0\0" } else { b"" };
                let mut bytes = [prefix, &order.tiff(&[], &fields)].concat();
                bytes.truncate(bytes.len() - bytes.len().min(usize::from(*cut)));
                Bytes::Exif(bytes, Some((*order, fields)))
            }
            Part::Xmp(Xmp::Bytes(bytes)) => Bytes::Xmp(bytes.clone()),
            Part::Xmp(Xmp::Packet {
                foreign,
                attributes,
                nodes,
            }) => Bytes::Xmp(packet(*foreign, attributes, nodes)),
            Part::Resources(resources, behind) => {
                let resources = resources.iter().flat_map(Resource::bytes);
                Bytes::Resources(resources.chain(behind.iter().copied()).collect())
            }
        }
    }
}

impl Entry {
    fn field(&self, order: Order) -> Field {
        let text = |tag, text: &Text| {
            let bytes = [text.0.as_bytes(), &[0]].concat();
            (tag, 2, bytes.len() as u32, bytes)
        };
        match self {
            Entry::Orientation(number) => (0x112, 3, 1, order.u16(*number).to_vec()),
            Entry::Artist(artist) => text(0x13b, artist),
            Entry::Copyright(notice) => text(0x8298, notice),
            Entry::Other {
                tag,
                kind,
                count,
                value,
            } => (0xC000 | tag, *kind, *count, value.to_vec()),
        }
    }
}

impl Container {
    fn format(self) -> Format {
        match self {
            Container::Jpeg => Format::Jpeg,
            Container::Png => Format::Png,
            Container::Webp => Format::Webp,
            Container::Gif => Format::Gif,
            Container::Tiff => Format::Tiff,
        }
    }

    /// The picture without metadata.
    fn upright(self) -> Image {
        decode(&self.file(&[]), self.format(), Keep::NOTHING).0
    }

    /// A file of pixels that all differ, with those of these parts that it has a place for.
    fn file(self, parts: &[Bytes]) -> Vec<u8> {
        let pixels: Vec<u8> = (0..(WIDTH * HEIGHT) as u8)
            .flat_map(|pixel| [16 * pixel, 255 - pixel, 7])
            .collect();
        match self {
            Container::Jpeg => jpeg(parts),
            Container::Png => png(&pixels, parts),
            Container::Webp => webp(&pixels, parts),
            Container::Gif => gif(&pixels, parts),
            Container::Tiff => tiff(&pixels, parts),
        }
    }
}

fn jpeg(parts: &[Bytes]) -> Vec<u8> {
    const PICTURE: &[u8] = include_bytes!("../../testdata/rotated.jpg");
    let segment = |marker: u8, name: &[u8], data: &[u8]| {
        let mut bytes = [name, data].concat();
        bytes.truncate(0xFFFF - 2);
        let length = (bytes.len() as u16 + 2).to_be_bytes();
        [&[0xFF, marker], &length[..], &bytes].concat()
    };
    let mut file = PICTURE[..2].to_vec();
    for part in parts {
        file.extend(match part {
            Bytes::Exif(bytes, _) => segment(0xE1, b"Exif\0\0", bytes),
            Bytes::Xmp(bytes) => segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0", bytes),
            Bytes::Resources(bytes) => segment(0xED, b"Photoshop 3.0\0", bytes),
        });
    }
    // Behind its own application segments.
    file.extend(&PICTURE[56..]);
    file
}

fn png(pixels: &[u8], parts: &[Bytes]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, WIDTH, HEIGHT);
    encoder.set_color(png::ColorType::Rgb);
    let mut writer = encoder.write_header().expect("a good header");
    for part in parts {
        let (name, data) = match part {
            Bytes::Exif(bytes, _) => (b"eXIf", bytes.clone()),
            Bytes::Xmp(bytes) => (
                b"iTXt",
                [b"XML:com.adobe.xmp\0\0\0\0\0", &bytes[..]].concat(),
            ),
            Bytes::Resources(_) => continue,
        };
        let written = writer.write_chunk(ChunkType(*name), &data);
        written.expect("it is written to memory");
    }
    writer.write_image_data(pixels).expect("as many samples");
    writer.finish().expect("it is written to memory");
    file
}

/// The extended form (RFC 9649, section 2.7) around a picture that is encoded once, since encoding
/// takes most of the time.
fn webp(pixels: &[u8], parts: &[Bytes]) -> Vec<u8> {
    static PICTURE: OnceLock<Vec<u8>> = OnceLock::new();
    let picture = PICTURE.get_or_init(|| {
        let picture = Picture::new(WIDTH, HEIGHT, ColorType::Rgb8, pixels).expect("a good picture");
        let encoded = Encoder::lossless().encode(&picture);
        encoded.expect("a small file").file[12..].to_vec()
    });
    let mut flags = 0;
    let mut behind = Vec::new();
    for part in parts {
        let (flag, name, data) = match part {
            Bytes::Exif(bytes, _) => (8, b"EXIF", bytes),
            Bytes::Xmp(bytes) => (4, b"XMP ", bytes),
            Bytes::Resources(_) => continue,
        };
        flags |= flag;
        behind.extend(name);
        behind.extend((data.len() as u32).to_le_bytes());
        behind.extend(data);
        behind.resize(behind.len().next_multiple_of(2), 0);
    }
    let mut file = b"RIFF".to_vec();
    file.extend((4 + 18 + picture.len() as u32 + behind.len() as u32).to_le_bytes());
    file.extend(b"WEBPVP8X");
    file.extend([10, 0, 0, 0, flags, 0, 0, 0]);
    file.extend([WIDTH as u8 - 1, 0, 0, HEIGHT as u8 - 1, 0, 0]);
    file.extend(picture);
    file.extend(behind);
    file
}

fn gif(pixels: &[u8], parts: &[Bytes]) -> Vec<u8> {
    let indices: Vec<u8> = (0..(WIDTH * HEIGHT) as u8).collect();
    let mut file = Vec::new();
    let size = (WIDTH as u16, HEIGHT as u16);
    let mut encoder = gif::Encoder::new(&mut file, size.0, size.1, pixels).expect("a good palette");
    let frame = gif::Frame::from_indexed_pixels(size.0, size.1, indices, None);
    encoder
        .write_frame(&frame)
        .expect("it is written to memory");
    drop(encoder);
    // Behind the palette of 16 colors.
    let behind = file.split_off(13 + 3 * 16);
    for part in parts {
        if let Bytes::Xmp(bytes) = part {
            file.extend(b"!\xFF\x0BXMP DataXMP");
            // A zero would end the data.
            file.extend(bytes.iter().filter(|byte| **byte != 0));
            file.push(1);
            file.extend((0..=255).rev());
            file.push(0);
        }
    }
    file.extend(behind);
    file
}

fn tiff(pixels: &[u8], parts: &[Bytes]) -> Vec<u8> {
    let own = parts.iter().find_map(|part| match part {
        Bytes::Exif(_, own) => own.clone(),
        _ => None,
    });
    let (order, own) = own.unwrap_or((Order::Little, Vec::new()));
    let bits = [8; 3].map(|bits| order.u16(bits)).concat();
    let mut fields = vec![
        order.short(256, WIDTH),
        order.short(257, HEIGHT),
        (258, 3, 3, bits),
        order.short(259, 1),
        order.short(262, 2),
        order.long(273, 8),
        order.short(277, 3),
        order.short(278, HEIGHT),
        order.long(279, pixels.len() as u32),
    ];
    fields.extend(own);
    for part in parts {
        match part {
            Bytes::Exif(..) => {}
            Bytes::Xmp(bytes) => fields.push((700, 1, bytes.len() as u32, bytes.clone())),
            Bytes::Resources(bytes) => fields.push((34_377, 1, bytes.len() as u32, bytes.clone())),
        }
    }
    order.tiff(pixels, &fields)
}

/// An XMP packet.
fn packet(foreign: Option<u8>, attributes: &[(u8, Text)], nodes: &[Node]) -> Vec<u8> {
    let mut xml = "<n0:RDF".to_owned();
    let foreign = foreign.map(|number| usize::from(number) % NAMESPACES.len());
    for (number, (prefix, uri)) in NAMESPACES.iter().enumerate() {
        let uri = if foreign == Some(number) { "x" } else { uri };
        let _ = write!(xml, " xmlns:{prefix}='{uri}'");
    }
    xml += ">";
    let name = |number: &u8| NAMES[usize::from(*number) % NAMES.len()];
    let begin = |xml: &mut String, element: &str, attributes: &[(u8, Text)]| {
        let _ = write!(xml, "<{element}");
        for (attribute, text) in attributes {
            let _ = write!(xml, " {}='{}'", name(attribute), text.0);
        }
    };
    begin(&mut xml, "n0:Description", attributes);
    xml += ">";
    let mut open = vec!["n0:RDF", "n0:Description"];
    for node in nodes {
        match node {
            Node::Open(element, attributes) => {
                begin(&mut xml, name(element), attributes);
                xml += ">";
                open.push(name(element));
            }
            Node::Empty(element, attributes) => {
                begin(&mut xml, name(element), attributes);
                xml += "/>";
            }
            Node::Close => {
                if let Some(element) = open.pop() {
                    let _ = write!(xml, "</{element}>");
                }
            }
            Node::Text(text) => xml += &text.0,
            Node::Data(text) => xml.extend(["<![CDATA[", &text.0, "]]>"]),
            Node::Comment(text) => xml.extend(["<!--", &text.0, "-->"]),
            Node::Markup(bytes) => xml += &String::from_utf8_lossy(bytes),
        }
    }
    for element in open.iter().rev() {
        let _ = write!(xml, "</{element}>");
    }
    xml.into_bytes()
}

/// A text in pieces, with what has a meaning in XML as entities.
#[derive(Clone, Debug)]
struct Text(String);

#[derive(Arbitrary)]
enum Piece {
    Letter(char),
    /// A reference to a letter by its number.
    Reference(u32),
    /// A reference to an entity.
    Entity(u8),
    /// A letter again and again.
    Repeated(u8, u16),
}

impl<'a> Arbitrary<'a> for Text {
    fn arbitrary(bytes: &mut Unstructured<'a>) -> arbitrary::Result<Text> {
        const ENTITIES: [&str; 7] = ["amp", "lt", "gt", "quot", "apos", "nbsp", ""];
        let mut text = String::new();
        for piece in bytes.arbitrary_iter::<Piece>()? {
            let _ = match piece? {
                Piece::Letter(letter @ ('<' | '&' | '\'')) => {
                    write!(text, "&#{};", u32::from(letter))
                }
                Piece::Letter(letter) => write!(text, "{letter}"),
                Piece::Reference(number) => write!(text, "&#{number};"),
                Piece::Entity(entity) => {
                    let entity = ENTITIES[usize::from(entity) % ENTITIES.len()];
                    write!(text, "&{entity};")
                }
                Piece::Repeated(letter, count) => {
                    let letter = ["x", " ", "\"", "&lt;", "\u{e4}"][usize::from(letter) % 5];
                    write!(text, "{}", letter.repeat(usize::from(count) % 5000))
                }
            };
        }
        Ok(Text(text))
    }
}

impl Resource {
    fn bytes(&self) -> Vec<u8> {
        let mut data: Vec<u8> = self.sets.iter().flat_map(DataSet::bytes).collect();
        data.extend(&self.behind);
        let name = &self.name[..self.name.len().min(255)];
        let mut bytes = b"8BIM".to_vec();
        bytes.extend(self.number.unwrap_or(0x0404).to_be_bytes());
        bytes.push(name.len() as u8);
        bytes.extend(name);
        bytes.resize(bytes.len().next_multiple_of(2), 0);
        bytes.extend((data.len() as u32).to_be_bytes());
        bytes.extend(data);
        bytes.resize(bytes.len().next_multiple_of(2), 0);
        bytes
    }
}

impl DataSet {
    fn bytes(&self) -> Vec<u8> {
        let (record, number, data) = match self {
            DataSet::Charset => (1, 90, &b"\x1b%G"[..]),
            DataSet::Creator(text) => (2, 80, text.0.as_bytes()),
            DataSet::Credit(text) => (2, 110, text.0.as_bytes()),
            DataSet::Notice(bytes) => (2, 116, &bytes[..]),
            DataSet::Other(record, number, bytes) => (*record, *number, &bytes[..]),
        };
        let data = &data[..data.len().min(0x7FFF)];
        let length = (data.len() as u16).to_be_bytes();
        [&[0x1C, record, number], &length[..], data].concat()
    }
}
