//! Packets and Exif of other forms, and of none.

use super::*;
use towebp_encoder::testing::Random;

const RDF: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";

/// A packet with `inside` in its description, and these attributes.
fn packet(attributes: &str, inside: &str) -> String {
    format!(
        "<rdf:RDF xmlns:rdf='{RDF}' xmlns:dc='http://purl.org/dc/elements/1.1/' \
         xmlns:cc='http://creativecommons.org/ns#' xmlns:p='http://ns.useplus.org/ldf/xmp/1.0/'>\
         <rdf:Description {attributes}>{inside}</rdf:Description></rdf:RDF>"
    )
}

fn kept(packet: &str) -> Option<String> {
    let kept = of_xmp(Some(packet.as_bytes()), None)?;
    let kept = String::from_utf8(kept).expect("it is UTF-8");
    let (_, behind) = kept.split_once("rdf:about=\"\">").expect("it describes");
    let (inside, _) = behind.split_once("</rdf:Description>").expect("it ends");
    Some(inside.to_owned())
}

#[test]
fn every_form_of_a_property_is_read() {
    let alt =
        "<dc:rights><rdf:Alt><rdf:li xml:lang=\"x-default\">a&lt;b</rdf:li></rdf:Alt></dc:rights>";
    let license = "<cc:license rdf:resource=\"https://example.com/by\"/>";
    let owner = "<plus:CopyrightOwner><rdf:Seq><rdf:li rdf:parseType=\"Resource\">\
        <plus:CopyrightOwnerName>Ada</plus:CopyrightOwnerName></rdf:li></rdf:Seq></plus:CopyrightOwner>";
    for (attributes, inside, expected) in [
        ("dc:rights='a&lt;b'", "", alt),
        ("", "<dc:rights><![CDATA[a<b]]></dc:rights>", alt),
        (
            "",
            "<dc:rights><rdf:Alt><rdf:li xml:lang='x-default'> a&#60;b </rdf:li><rdf:li xml:lang='de'>c</rdf:li></rdf:Alt></dc:rights>",
            alt,
        ),
        (
            "",
            "<cc:license rdf:resource='https://example.com/by'/>",
            license,
        ),
        (
            "",
            "<cc:license>https://example.com/by</cc:license>",
            license,
        ),
        (
            "",
            "<p:CopyrightOwner><rdf:Bag><rdf:li p:CopyrightOwnerName='Ada' p:CopyrightOwnerID='7'/></rdf:Bag></p:CopyrightOwner>",
            owner,
        ),
        (
            "",
            "<p:CopyrightOwner><rdf:Seq><rdf:li><rdf:Description><p:CopyrightOwnerName>Ada</p:CopyrightOwnerName>\
             <p:CopyrightOwnerID>7</p:CopyrightOwnerID></rdf:Description></rdf:li></rdf:Seq></p:CopyrightOwner>",
            owner,
        ),
    ] {
        let given = packet(attributes, inside);
        let once = kept(&given);
        assert_eq!(once.as_deref(), Some(expected), "{given}");
        let written = of_xmp(Some(given.as_bytes()), None);
        assert_eq!(of_xmp(written.as_deref(), None), written, "again");
    }
}

#[test]
fn other_places_names_and_namespaces_are_not_read() {
    for (attributes, inside) in [
        ("dc:title='x'", "<dc:subject>y</dc:subject>"),
        ("", "<dc:title><dc:rights>x</dc:rights></dc:title>"),
        ("", "<dc:title><rdf:Description dc:rights='x'/></dc:title>"),
        (
            "",
            "<dc:rights xmlns:dc='https://example.com/'>x</dc:rights>",
        ),
        (
            "",
            "<dc:rights> </dc:rights><dc:creator><rdf:Seq/></dc:creator>",
        ),
        ("", "<!-- <dc:rights>x</dc:rights> -->"),
        // A text where structures belong.
        ("p:Licensor='x'", "<p:Licensor>y</p:Licensor>"),
    ] {
        assert_eq!(kept(&packet(attributes, inside)), None, "{inside}");
    }
    assert_eq!(kept("<dc:rights>x</dc:rights>"), None);
    assert_eq!(kept("\u{0}\u{1}"), None);
}

#[test]
fn texts_beyond_the_bound_are_left_out() {
    let creators = "<rdf:li>Ada</rdf:li>".repeat(100);
    let given = packet(
        "",
        &format!("<dc:creator><rdf:Seq>{creators}</rdf:Seq></dc:creator>"),
    );
    assert_eq!(kept(&given).expect("names").matches("Ada").count(), 32);
    let long = format!("dc:rights='{}' dc:creator='Ada'", "x".repeat(20_000));
    let found = kept(&packet(&long, "")).expect("a name");
    assert!(found.contains("Ada") && !found.contains("xx"));
}

#[test]
fn exif_texts_are_found_in_place_and_by_offset() {
    let exif = |value: &[u8], count: u32| {
        let mut exif = b"Exif\0\0II*\0\x08\0\0\0\x01\0\x98\x82\x02\0".to_vec();
        exif.extend(count.to_le_bytes());
        exif.extend(value);
        exif
    };
    let written = of_exif(&exif(b"a\0\0\0\0\0\0\0", 2)).expect("a text");
    assert_eq!(of_exif(&written), Some(written.clone()));
    assert!(written.ends_with(b"\x02\0\0\0a\0\0\0\0\0\0\0"));
    let far = of_exif(&exif(b"\x1a\0\0\0\0\0\0\0Ada\0Grace\0", 10)).expect("a text");
    assert!(far.ends_with(b"Ada\0Grace\0"), "photographer and editor");
    for (value, count) in [
        (&b"\0\0\0\0"[..], 4),
        (b"\x1a\0\0\0", 10),
        (b"\xff\xff\xff\xff", u32::MAX),
        (b"\0\0\0\0", u32::MAX),
        (b"", 1),
    ] {
        assert_eq!(of_exif(&exif(value, count)), None, "{value:?}");
    }
}

#[test]
fn two_long_exif_texts_stay_two_up_to_the_bound() {
    /// Exif with Artist and Copyright, which lie one behind the other.
    fn exif(artist: &[u8], copyright: &[u8]) -> Vec<u8> {
        let at = 8 + 2 + 2 * 12 + 4u32;
        let mut exif = b"II*\0\x08\0\0\0\x02\0".to_vec();
        let (first, second) = (artist.len() as u32, copyright.len() as u32);
        for (tag, count, at) in [(0x013bu16, first, at), (0x8298, second, at + first)] {
            exif.extend([tag.to_le_bytes(), 2u16.to_le_bytes()].concat());
            exif.extend([count.to_le_bytes(), at.to_le_bytes()].concat());
        }
        [&exif, &[0; 4][..], artist, copyright].concat()
    }
    let given = exif(b"Ada Augusta\0", b"all rights\0\0");
    let written = of_exif(&given).expect("two texts");
    let read = Tiff::new(&written).expect("a header");
    assert_eq!(read.text(TAGS[0]), Some(&b"Ada Augusta\0"[..]));
    assert_eq!(read.text(TAGS[1]), Some(&b"all rights\0"[..]));
    let long = |length| {
        let written = of_exif(&exif(&vec![b'x'; length], b"all rights\0\0")).expect("a text");
        let read = Tiff::new(&written).expect("a header");
        read.text(TAGS[0]).map(<[u8]>::len)
    };
    assert_eq!(long(4096), Some(4097), "with the zero at its end");
    assert_eq!(long(4097), None);
}

#[test]
fn iptc_adds_only_what_xmp_lacks() {
    let iptc = b"8BIM\x04\x04\0\0\0\0\0\x12\x1c\x02\x50\0\x05Grace\x1c\x02\x74\0\x03All";
    let given = packet("dc:creator='Ada'", "");
    let both = of_xmp(Some(given.as_bytes()), Some(iptc)).expect("two properties");
    let both = String::from_utf8(both).expect("it is UTF-8");
    assert!(both.contains("Ada") && both.contains("All"), "{both}");
    assert!(!both.contains("Grace"), "{both}");
}

/// No damage makes a reader panic, and whatever it finds can be read again.
#[test]
fn damaged_descriptions_are_read_without_a_fault() {
    let good = packet(
        "dc:rights='a&amp;b'",
        "<dc:creator><rdf:Seq><rdf:li>Ada</rdf:li></rdf:Seq></dc:creator><p:Licensor><rdf:Seq><rdf:li \
         p:LicensorURL='u'/></rdf:Seq></p:Licensor>",
    );
    let iptc = b"8BIM\x04\x04\0\0\0\0\0\x10\x1c\x02\x50\0\x03Ada\x1c\x02\x74\0\x03Ada";
    let exif =
        of_exif(b"II*\0\x08\0\0\0\x01\0\x98\x82\x02\0\x04\0\0\0Ada\0\0\0\0\0").expect("a text");
    let mut random = Random::new(7);
    let mut damaged = |bytes: &[u8]| {
        let mut bytes = bytes.to_vec();
        for _ in 0..random.below(6) {
            let at = random.below(bytes.len() as u32) as usize;
            match random.below(3) {
                0 => bytes[at] = random.below(256) as u8,
                1 => drop(bytes.drain(at..(at + 3).min(bytes.len()))),
                _ => bytes.insert(at, b"<>&'/\0"[random.below(6) as usize]),
            }
        }
        bytes
    };
    for _ in 0..20_000 {
        let (xmp, iptc, exif) = (damaged(good.as_bytes()), damaged(iptc), damaged(&exif));
        if let Some(packet) = of_xmp(Some(&xmp), Some(&iptc)) {
            assert_eq!(of_xmp(Some(&packet), None), Some(packet));
        }
        if let Some(found) = of_exif(&exif) {
            assert_eq!(of_exif(&found), Some(found));
        }
    }
}
