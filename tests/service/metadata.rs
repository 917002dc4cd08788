//! What becomes of Exif, XMP and ICC profiles: dropped, or with `metadata=keep` beside the pixels.

use crate::support::picture::{HALVES_JPEG, Picture, chunks};
use crate::support::service::Service;
use image_webp::WebPDecoder;
use moxcms::ColorProfile;
use std::io::Cursor;

const PACKET: &[u8] =
    br#"<x:xmpmeta xmlns:x="adobe:ns:meta/"><d tiff:Orientation="6"/></x:xmpmeta>"#;
const UPRIGHT_PACKET: &[u8] =
    br#"<x:xmpmeta xmlns:x="adobe:ns:meta/"><d tiff:Orientation="1"/></x:xmpmeta>"#;

/// An orientation, and the name of a camera.
fn exif(orientation: u8) -> Vec<u8> {
    let mut exif = b"MM\0*\0\0\0\x08\0\x02".to_vec();
    exif.extend(b"\x01\x0f\0\x02\0\0\0\x04Cam\0");
    exif.extend(b"\x01\x12\0\x03\0\0\0\x01\0");
    exif.extend([orientation, 0, 0, 0, 0, 0, 0]);
    exif
}

fn display_p3() -> Vec<u8> {
    ColorProfile::new_display_p3()
        .encode()
        .expect("a valid profile")
}

fn gray_profile() -> Vec<u8> {
    ColorProfile::new_gray_with_gamma(1.0)
        .encode()
        .expect("a valid profile")
}

/// Red on the left and blue on the right as stored, to be turned to the right.
fn photograph(profile: &[u8]) -> Vec<u8> {
    described(&exif(6), PACKET, &[], profile)
}

/// That photograph with these descriptions; `iptc` are image resources of Photoshop.
fn described(exif: &[u8], packet: &[u8], iptc: &[u8], profile: &[u8]) -> Vec<u8> {
    let segments = [
        (0xe1, [b"Exif\0\0", exif].concat()),
        (0xe1, [b"http://ns.adobe.com/xap/1.0/\0", packet].concat()),
        (0xed, [b"Photoshop 3.0\0", iptc].concat()),
        (0xe2, [b"ICC_PROFILE\0\x01\x01", profile].concat()),
    ];
    let mut file = HALVES_JPEG[..2].to_vec();
    for (marker, data) in segments {
        file.extend([0xff, marker]);
        file.extend((data.len() as u16 + 2).to_be_bytes());
        file.extend(data);
    }
    file.extend(&HALVES_JPEG[2..]);
    file
}

struct Kept {
    icc: Option<Vec<u8>>,
    exif: Option<Vec<u8>>,
    xmp: Option<Vec<u8>>,
}

/// By a decoder that is not ours.
fn kept(webp: &[u8]) -> Kept {
    let mut decoder = WebPDecoder::new(Cursor::new(webp)).expect("a WebP file");
    Kept {
        icc: decoder.icc_profile().expect("a whole file"),
        exif: decoder.exif_metadata().expect("a whole file"),
        xmp: decoder.xmp_metadata().expect("a whole file"),
    }
}

#[test]
fn metadata_is_dropped_unless_it_is_asked_for() {
    let service = Service::start();
    let photograph = photograph(&display_p3());
    for parameters in [&[][..], &[("metadata", "strip")]] {
        let answer = service.convert(parameters, "image/jpeg", &photograph);
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(chunks(&answer.body), ["VP8 "], "{parameters:?}");
    }
    let wrong = service.convert(&[("metadata", "some")], "image/jpeg", &photograph);
    let detail = wrong.problem(400, "invalid_parameter");
    assert!(detail.contains("strip, copyright, icc or keep"), "{detail}");
}

#[test]
fn what_is_kept_agrees_with_the_pixels() {
    let service = Service::start();
    let profile = display_p3();
    let convert = |parameters: &[(&str, &str)]| {
        let parameters = [&[("metadata", "keep")], parameters].concat();
        let answer = service.convert(&parameters, "image/jpeg", &photograph(&profile));
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.body
    };
    let webp = convert(&[]);
    assert_eq!(chunks(&webp), ["VP8X", "ICCP", "VP8 ", "EXIF", "XMP "]);
    let found = kept(&webp);
    assert_eq!(found.icc.as_ref(), Some(&profile));
    assert_eq!(found.exif, Some(exif(1)), "it is upright");
    assert_eq!(found.xmp.as_deref(), Some(UPRIGHT_PACKET));
    // The samples of the file, not those that sRGB has for them (217, 0, 27), turned to the right.
    let shown = Picture::decode(&webp);
    assert_eq!((shown.width, shown.height), (48, 64));
    let [red, green, blue, _] = shown.at(24, 16);
    for (sample, stored) in [(red, 200), (green, 30), (blue, 30)] {
        assert!(sample.abs_diff(stored) < 12, "{:?}", shown.at(24, 16));
    }

    // A watermark's colors are sRGB, and so the picture becomes.
    let webp = convert(&[("watermark", "."), ("watermark_opacity", "0")]);
    let found = kept(&webp);
    assert_eq!((found.icc, found.exif), (None, Some(exif(1))));
    let stripped = service.convert(&[], "image/jpeg", &photograph(&profile));
    assert_eq!(Picture::decode(&webp), Picture::decode(&stripped.body));
}

#[test]
fn a_profile_that_does_not_fit_rgb_is_applied_or_dropped() {
    let service = Service::start();
    let keep = [("metadata", "keep")];
    for profile in [gray_profile(), display_p3()[..300].to_vec(), vec![7; 200]] {
        let answer = service.convert(&keep, "image/jpeg", &photograph(&profile));
        assert_eq!(chunks(&answer.body), ["VP8X", "VP8 ", "EXIF", "XMP "]);
    }
    let mut file = Vec::new();
    let mut info = png::Info::with_size(4, 4);
    info.icc_profile = Some(gray_profile().into());
    info.exif_metadata = Some(exif(3).into());
    png::Encoder::with_info(&mut file, info)
        .and_then(png::Encoder::write_header)
        .and_then(|mut writer| writer.write_image_data(&[55; 16]))
        .expect("a valid picture");
    let parameters = [("metadata", "keep"), ("mode", "lossless")];
    let answer = service.convert(&parameters, "image/png", &file);
    assert_eq!(chunks(&answer.body), ["VP8X", "VP8L", "EXIF"]);
    assert_eq!(kept(&answer.body).exif, Some(exif(1)));
    // Linear 55 is sRGB 128.
    assert_eq!(Picture::decode(&answer.body).at(0, 0), [128, 128, 128, 255]);
}

#[test]
fn pictures_without_metadata_come_out_as_ever() {
    let service = Service::start();
    let picture = Picture::waves(40, 30);
    for (kind, file) in [
        ("image/png", picture.png()),
        ("image/gif", picture.gif()),
        ("image/bmp", picture.bmp()),
    ] {
        let plain = service.convert(&[], kind, &file);
        let keeping = service.convert(&[("metadata", "keep")], kind, &file);
        assert_eq!(plain.body, keeping.body, "{kind}");
    }
}

/// With a packet between the frames, whose magic ending leads to its end from any of its bytes.
#[test]
fn an_animation_keeps_its_packet() {
    let service = Service::start();
    let mut file = Vec::new();
    let mut encoder =
        gif::Encoder::new(&mut file, 2, 2, &[255, 0, 0, 0, 0, 255]).expect("a valid palette");
    for index in [0, 1] {
        if index == 1 {
            encoder
                .write_raw_extension(gif::AnyExtension(0xff), &[b"XMP DataXMP"])
                .expect("a Vec takes all");
        }
        let frame = gif::Frame {
            width: 2,
            height: 2,
            delay: 10,
            buffer: vec![index; 4].into(),
            ..gif::Frame::default()
        };
        encoder.write_frame(&frame).expect("a valid frame");
    }
    drop(encoder);
    // The encoder has ended the extension at once: the packet belongs in front of that end.
    let name = b"XMP DataXMP";
    let at = file
        .windows(name.len())
        .position(|window| window == name)
        .expect("it was written")
        + name.len();
    let mut data = PACKET.to_vec();
    data.push(1);
    data.extend((0..=255).rev());
    file.splice(at..at, data);
    for animation in ["all", "first"] {
        let parameters = [("metadata", "keep"), ("animation", animation)];
        let answer = service.convert(&parameters, "image/gif", &file);
        assert_eq!(answer.status, 200, "{}", answer.text());
        let names = chunks(&answer.body);
        let expected = if animation == "all" {
            &["VP8X", "ANIM", "ANMF", "ANMF", "XMP "][..]
        } else {
            &["VP8X", "VP8L", "XMP "]
        };
        assert_eq!(names, expected);
        assert_eq!(kept(&answer.body).xmp.as_deref(), Some(UPRIGHT_PACKET));
    }
}

/// A photograph as an agency sends it: who made it, and what nobody else has to know.
const AGENCY_PACKET: &[u8] = br#"<?xpacket begin="" id="W5M0MpCehiHzreSzNTczkc9d"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/"><r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
<r:Description r:about="" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:exif="http://ns.adobe.com/exif/1.0/"
 xmlns:xmpRights="http://ns.adobe.com/xap/1.0/rights/" xmlns:plus="http://ns.useplus.org/ldf/xmp/1.0/"
 xmlns:xmpMM="http://ns.adobe.com/xap/1.0/mm/" exif:GPSLatitude="47,22N" xmpRights:WebStatement="https://example.com/l?a=1&amp;b=2">
<dc:creator><r:Seq><r:li>Ada</r:li><r:li>Grace &amp; Co</r:li></r:Seq></dc:creator>
<dc:description><r:Alt><r:li xml:lang="x-default">secret place</r:li></r:Alt></dc:description>
<xmpMM:History><r:Seq><r:li><r:Description dc:rights="secret step"/></r:li></r:Seq></xmpMM:History>
<plus:Licensor><r:Seq><r:li r:parseType="Resource"><plus:LicensorURL>https://example.com/buy</plus:LicensorURL>
<plus:LicensorTelephone1>secret number</plus:LicensorTelephone1></r:li></r:Seq></plus:Licensor>
</r:Description></r:RDF></x:xmpmeta>"#;

/// Camera, position, Artist and Copyright, whose last bytes are those of a thumbnail.
fn agency_exif() -> Vec<u8> {
    let mut exif = b"MM\0*\0\0\0\x08\0\x04".to_vec();
    exif.extend(b"\x01\x0f\0\x02\0\0\0\x07\0\0\0\x3e");
    exif.extend(b"\x01\x3b\0\x02\0\0\0\x04Ada\0");
    exif.extend(b"\x82\x98\0\x02\0\0\0\x09\0\0\0\x46");
    exif.extend(b"\x88\x25\0\x04\0\0\0\x01\0\0\0\x50\0\0\0\x51");
    exif.extend(b"secret\0\0");
    exif.extend(b"(c) Ada\0\0secret thumbnail");
    exif
}

/// IPTC with a caption, By-line, Credit and Copyright Notice.
fn agency_iptc() -> Vec<u8> {
    let mut records = Vec::new();
    for (number, text) in [
        (120, &b"secret caption"[..]),
        (80, b"Not Ada"),
        (110, b"Agency \xa9"),
        (116, b"All rights reserved"),
    ] {
        records.extend([0x1c, 2, number, 0, text.len() as u8]);
        records.extend(text);
    }
    let mut resources = b"8BIM\x04\x0c\0\0\0\0\0\x0asecret one8BIM\x04\x04\0\0".to_vec();
    resources.extend((records.len() as u32).to_be_bytes());
    resources.extend(records);
    resources
}

#[test]
fn copyright_keeps_names_and_rights_and_nothing_else() {
    let service = Service::start_with(&["--accept", "webp"]);
    let (exif, iptc) = (agency_exif(), agency_iptc());
    let jpeg = described(&exif, AGENCY_PACKET, &iptc, &display_p3());
    let mut info = png::Info::with_size(4, 4);
    info.exif_metadata = Some(exif.clone().into());
    let packet = str::from_utf8(AGENCY_PACKET)
        .expect("it is a text")
        .to_owned();
    let text = png::text_metadata::ITXtChunk::new("XML:com.adobe.xmp", packet);
    info.utf8_text.push(text);
    let mut png = Vec::new();
    png::Encoder::with_info(&mut png, info)
        .and_then(png::Encoder::write_header)
        .and_then(|mut writer| writer.write_image_data(&[55; 16]))
        .expect("a valid picture");
    let webp = towebp_encoder::Encoder::lossy(80)
        .exif(&exif)
        .xmp(AGENCY_PACKET);
    let webp = Picture::waves(40, 30).webp(&webp);
    for (kind, file) in [
        ("image/jpeg", &jpeg),
        ("image/png", &png),
        ("image/webp", &webp),
    ] {
        let answer = service.convert(&[("metadata", "copyright")], kind, file);
        assert_eq!(answer.status, 200, "{}", answer.text());
        let found = kept(&answer.body);
        assert_eq!(found.icc, None, "{kind}");
        let exif = b"II*\0\x08\0\0\0\x02\0\x3b\x01\x02\0\x04\0\0\0Ada\0\x98\x82\x02\0\x08\0\0\0\x26\0\0\0\0\0\0\0(c) Ada\0";
        assert_eq!(found.exif.as_deref(), Some(&exif[..]), "{kind}");
        let xmp = String::from_utf8(found.xmp.expect("it has rights")).expect("UTF-8");
        for kept in [
            "<dc:creator><rdf:Seq><rdf:li>Ada</rdf:li><rdf:li>Grace &amp; Co</rdf:li></rdf:Seq></dc:creator>",
            "<xmpRights:WebStatement>https://example.com/l?a=1&amp;b=2</xmpRights:WebStatement>",
            "<plus:Licensor><rdf:Seq><rdf:li rdf:parseType=\"Resource\"><plus:LicensorURL>https://example.com/buy</plus:LicensorURL></rdf:li></rdf:Seq></plus:Licensor>",
        ] {
            assert!(xmp.contains(kept), "{kind}: {xmp}");
        }
        let is_jpeg = kind == "image/jpeg";
        for of_iptc in [
            "<photoshop:Credit>Agency \u{a9}</photoshop:Credit>",
            "<rdf:li xml:lang=\"x-default\">All rights reserved</rdf:li>",
        ] {
            assert_eq!(xmp.contains(of_iptc), is_jpeg, "{xmp}");
        }
        for other in ["secret", "GPS", "Not Ada"] {
            assert!(!xmp.contains(other), "{kind}: {xmp}");
        }
        let stripped = service.convert(&[], kind, file);
        assert_eq!(
            Picture::decode(&answer.body),
            Picture::decode(&stripped.body)
        );
    }
}

#[test]
fn icc_keeps_the_profile_alone() {
    let service = Service::start();
    let file = described(&agency_exif(), AGENCY_PACKET, &agency_iptc(), &display_p3());
    let convert = |metadata: &str, more: &[(&str, &str)]| {
        let parameters = [&[("metadata", metadata)], more].concat();
        service.convert(&parameters, "image/jpeg", &file).body
    };
    let webp = convert("icc", &[]);
    assert_eq!(chunks(&webp), ["VP8X", "ICCP", "VP8 "]);
    assert_eq!(kept(&webp).icc, Some(display_p3()));
    assert_eq!(
        Picture::decode(&webp),
        Picture::decode(convert("keep", &[]))
    );
    let laid = convert("icc", &[("background", "red")]);
    assert_eq!(chunks(&laid), ["VP8 "], "colors that are given are sRGB");
}
