//! The memory that the server takes for a request, and that it gives it back.
//! `scripts/check-memory` measures the same for longer.

use crate::support::animation::moving_squares;
use crate::support::picture::Picture;
use crate::support::service::Service;

/// Bytes per pixel of an opaque picture, beyond the server's own memory and the body.
const OPAQUE: usize = 12;

/// Bytes per pixel of a picture with transparency, whose lossless encoder holds pixels of four
/// bytes, the copies found among them, and tokens.
const CLEAR: usize = 18;

/// The allocator rounds up and keeps pieces for later: a few MiB, however large the picture is.
const SLACK: usize = 6 << 20;

#[test]
fn a_request_takes_so_many_bytes_a_pixel_and_the_body() {
    let (width, height) = (2000, 1500);
    let opaque = Picture::waves(width, height);
    let clear = Picture::of(width, height, |x, y| {
        let [red, green, blue, _] = opaque.at(x, y);
        [red, green, blue, (x ^ y) as u8]
    });
    for (name, body, per_pixel) in [
        ("opaque", opaque.png(), OPAQUE),
        ("clear", clear.png(), CLEAR),
    ] {
        let service = Service::start();
        let before = memory(&service, "VmRSS");
        service.webp(&[("watermark", "© example.org")], &body);
        let taken = memory(&service, "VmHWM") - before;
        let pixels = (width * height) as usize;
        assert!(
            taken <= pixels * per_pixel + body.len() + SLACK,
            "{name}: {taken} bytes are {:.1} a pixel besides the body of {}",
            (taken as f64 - body.len() as f64) / pixels as f64,
            body.len()
        );
    }
}

#[test]
fn a_picture_in_a_form_is_held_once() {
    let body = Picture::noise(2000, 1500).png();
    let part =
        "--a\r\nContent-Disposition: form-data; name=file\r\nContent-Type: image/png\r\n\r\n";
    let form = [part.as_bytes(), &body, b"\r\n--a--"].concat();
    // With one thread no stages of the two conversions overlap by chance.
    let most = |media_type: &str, body: &[u8]| {
        let service = Service::start_with(&["--threads", "1"]);
        let answer = service.convert(&[("effort", "low")], media_type, body);
        assert_eq!(answer.status, 200, "{}", answer.text());
        memory(&service, "VmHWM")
    };
    let plain = most("image/png", &body);
    let in_form = most("multipart/form-data; boundary=a", &form);
    assert!(
        in_form <= plain + body.len() / 2,
        "{in_form} bytes in a form, {plain} as a plain body of {}",
        body.len()
    );
}

#[test]
fn a_film_takes_a_frame_and_its_file_more_than_a_still_picture() {
    const FRAME: usize = 1000 * 1000 * 4;
    let animation = moving_squares(1000, 1000, 60);
    let taken = |parameters: &[(&str, &str)]| {
        let service = Service::start();
        let before = memory(&service, "VmRSS");
        let answer = service.convert(parameters, "image/gif", &animation);
        assert_eq!(answer.status, 200, "{}", answer.text());
        (memory(&service, "VmHWM") - before, answer.body.len())
    };
    let (still, _) = taken(&[("animation", "first")]);
    let (moving, file) = taken(&[]);
    assert!(
        moving <= still + FRAME + file,
        "60 frames took {moving} bytes, the first {still}, and the file has {file}"
    );
}

#[test]
fn memory_stays_where_it_was() {
    let service = Service::start();
    let pictures: Vec<Vec<u8>> = (0..6)
        .map(|number| Picture::waves(200 + 60 * number, 300).png())
        .collect();
    let convert = |times: usize| {
        for number in 0..times {
            service.webp(&[], &pictures[number % pictures.len()]);
        }
        memory(&service, "VmRSS")
    };
    let early = convert(50);
    let late = convert(150);
    assert!(
        late <= early + (4 << 20),
        "{early} bytes after 50 conversions, {late} after 200"
    );
}

#[test]
#[cfg(target_env = "gnu")]
fn large_pictures_leave_little_behind() {
    let service = Service::start();
    let picture = Picture::of(2000, 1500, |x, y| [x as u8, y as u8, 90, (x ^ y) as u8]).png();
    let before = memory(&service, "VmRSS");
    // Without src/process/allocator.rs the allocator keeps 65 MiB.
    for _ in 0..4 {
        service.webp(&[], &picture);
    }
    let kept = memory(&service, "VmRSS") - before;
    assert!(kept < 24 << 20, "{kept} bytes are kept");
}

#[test]
fn a_very_long_watermark_takes_little() {
    let service = Service::start_with(&["--max-head", "512KiB"]);
    let png = Picture::flat(300, 200, [40, 40, 40]).png();
    let before = memory(&service, "VmRSS");
    let text = "towebp ".repeat(30_000);
    service.webp(&[("watermark", &text)], &png);
    let taken = memory(&service, "VmHWM") - before;
    assert!(
        taken < 100 * text.len(),
        "{taken} bytes for a text of {}",
        text.len()
    );
}

/// `VmRSS`, the server's memory now, or `VmHWM`, the most that it ever had, in bytes.
fn memory(service: &Service, name: &str) -> usize {
    let path = format!("/proc/{}/status", service.server.process_id());
    let status = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let kibibytes = status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
        .and_then(|value| value.trim().strip_suffix(" kB")?.parse::<usize>().ok());
    kibibytes.unwrap_or_else(|| panic!("no {name} in {status}")) * 1024
}
