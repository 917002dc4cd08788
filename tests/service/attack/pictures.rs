//! Pictures that ask for much memory or time, sent with a token. `tests/memory/hostile/` has many
//! more, without a server.

use super::{BEARABLE, Bystander};
use crate::support::hostile::{
    END_OF_IMAGE, chunk, deflated_zeros, empty_scan, first_scan, gif_head, gif_image, ihdr,
    jpeg_head, png, run_length_bmp, scans_of_runs,
};
use crate::support::service::Service;

#[test]
fn hostile_pictures_are_answered_and_others_served_meanwhile() {
    let service = Service::start_with(&["--conversion-timeout", "1"]);
    let bystander = Bystander::start(&service);

    let data = chunk(*b"IDAT", &deflated_zeros(2000));
    let profile = chunk(
        *b"iCCP",
        &[b"p\0\0", &deflated_zeros(32 << 20)[..]].concat(),
    );
    let mut scans = jpeg_head(16, 16, true);
    scans.extend(first_scan(4));
    scans.extend(empty_scan(1, 1, 4).repeat(20_000));
    scans.extend(END_OF_IMAGE);
    let mut frames = gif_head(16, 16);
    frames.extend(gif_image(16, 16).repeat(100_000));
    let cases: [(&str, &str, Vec<u8>, &[u16]); 7] = [
        (
            "100 million pixels without data",
            "image/png",
            png(&[ihdr(10_000, 10_000, false), data.clone()]),
            &[400],
        ),
        (
            "a profile that inflates",
            "image/png",
            png(&[ihdr(20, 20, false), profile, data]),
            &[200, 400],
        ),
        ("20,000 scans", "image/jpeg", scans, &[400]),
        (
            "91 scans of 16 million pixels in 8 KB",
            "image/jpeg",
            scans_of_runs(4096, 4096),
            &[200, 503],
        ),
        ("100,000 frames", "image/gif", frames, &[400]),
        (
            "16 million pixels in 20 KB",
            "image/gif",
            [gif_head(16383, 1000), gif_image(16383, 1000)].concat(),
            &[200, 503],
        ),
        (
            "16 million pixels in two bytes",
            "image/bmp",
            run_length_bmp(4096, 4096, &[0, 1]),
            &[200, 503],
        ),
    ];
    for (name, media_type, file, allowed) in cases {
        let answer = service.convert(&[], media_type, &file);
        assert!(
            allowed.contains(&answer.status),
            "{name}: {} {}",
            answer.status,
            answer.text()
        );
    }
    bystander.finish("hostile pictures", BEARABLE);
}
