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
    let segments = [
        (0xe1, [b"Exif\0\0", &exif(6)[..]].concat()),
        (0xe1, [b"http://ns.adobe.com/xap/1.0/\0", PACKET].concat()),
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
    assert!(detail.contains("strip or keep"), "{detail}");
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
