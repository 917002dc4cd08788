use super::*;

fn span(start: f64, length: f64, size: u32) -> Span {
    Span {
        start,
        length,
        size,
    }
}

fn to(image: &Image, width: u32, height: u32) -> Image {
    let resize = Resize {
        across: span(0.0, f64::from(image.width), width),
        down: span(0.0, f64::from(image.height), height),
    };
    let cancel = Cancel::never();
    let resized = resize.apply(image, Workers::new(1, None, &cancel));
    resized.expect("it is not cancelled")
}

fn image<const N: usize>(width: u32, height: u32, pixel: impl Fn(u32, u32) -> [u8; N]) -> Image {
    let places = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
    Image {
        width,
        height,
        layout: if N == 3 { Layout::Rgb } else { Layout::Rgba },
        pixels: places.flat_map(|(x, y)| pixel(x, y)).collect(),
    }
}

#[test]
fn black_and_white_are_half_of_the_light() {
    let board = image(64, 64, |x, y| [(x + y) as u8 % 2 * 255; 3]);
    for (width, height) in [(32, 32), (16, 32), (8, 8), (4, 4), (1, 1)] {
        let resized = to(&board, width, height);
        assert_eq!((resized.width, resized.height), (width, height));
        // At the edges the kernel is cut off.
        for sample in resized.pixels {
            assert!(sample.abs_diff(188) <= 6, "{sample} in {width} x {height}");
        }
    }
}

#[test]
fn the_inside_of_a_board_is_exactly_half_of_the_light() {
    let board = image(640, 640, |x, y| [(x + y) as u8 % 2 * 255; 3]);
    for size in [320, 64, 40] {
        let resized = to(&board, size, size);
        let stride = size as usize * 3;
        for row in resized
            .pixels
            .chunks(stride)
            .take(size as usize - 6)
            .skip(6)
        {
            assert!(
                row[18..stride - 18].iter().all(|&sample| sample == 188),
                "{size}"
            );
        }
    }
}

#[test]
fn a_jpeg_is_decoded_at_the_least_size_that_leaves_enough() {
    for (width, eighths) in [
        (1600, 8),
        (916, 8),
        (914, 4),
        (401, 4),
        (400, 2),
        (201, 2),
        (200, 1),
        (1, 1),
    ] {
        let across = span(0.0, 3200.0, width);
        // The side that shrinks less decides.
        for (across, down) in [(across, span(0.0, 99.0, 1)), (span(0.0, 99.0, 1), across)] {
            let resize = Resize { across, down };
            assert_eq!(resize.least_eighths(), eighths, "to {width}");
        }
    }
    let part = span(40.0, 1000.0, 100);
    assert_eq!(part.at(2), span(10.0, 250.0, 100));
    assert_eq!(part.reversed(1500), span(460.0, 1000.0, 100));
}

#[test]
fn sides_may_shrink_by_different_factors() {
    // Across by boxes, down without, and the other way.
    let columns = image(1000, 40, |x, _| [(x / 250) as u8 * 60; 3]);
    let rows = image(40, 1000, |_, y| [(y / 250) as u8 * 60; 3]);
    let (wide, high) = (to(&columns, 40, 20), to(&rows, 20, 40));
    for (place, level) in [(5, 0), (15, 60), (25, 120), (35, 180)] {
        assert_eq!(wide.pixels[(7 * 40 + place) * 3], level);
        assert_eq!(high.pixels[(place * 20 + 7) * 3], level);
    }
}

#[test]
fn a_plain_area_keeps_its_color_at_every_size() {
    let plain = image(47, 31, |_, _| [7, 77, 177]);
    let clear = image(47, 31, |_, _| [7, 77, 177, 99]);
    for width in [1, 2, 3, 5, 7, 13, 24, 46, 47, 48, 150] {
        for height in [1, 2, 15, 31, 33, 90] {
            let count = width as usize * height as usize;
            assert_eq!(to(&plain, width, height).pixels, [7, 77, 177].repeat(count));
            let pixels = [7, 77, 177, 99].repeat(count);
            assert_eq!(to(&clear, width, height).pixels, pixels);
        }
    }
}

#[test]
fn the_same_size_is_the_same_picture() {
    let picture = image(20, 30, |x, y| {
        [x as u8 * 12, y as u8 * 8, (x * y) as u8, 200]
    });
    assert_eq!(to(&picture, 20, 30), picture);
}

#[test]
fn nothing_of_transparent_pixels_is_seen() {
    // White on the right; what is transparent has any color.
    let half = image(60, 60, |x, y| match x {
        0..30 => [(x * y) as u8, 0, 99, 0],
        _ => [255; 4],
    });
    for size in [45, 20, 7, 100] {
        for pixel in to(&half, size, size).pixels.as_chunks::<4>().0 {
            let [color @ .., alpha] = *pixel;
            assert!(alpha == 0 || color == [255; 3], "{pixel:?}");
        }
    }
    let opaque = image(60, 60, |x, _| [x as u8, 0, 0, 255]);
    assert_eq!(to(&opaque, 30, 30).layout, Layout::Rgb);
}

#[test]
fn a_window_has_the_pixels_of_the_whole() {
    let picture = image(90, 70, |x, y| {
        [(x * x + y) as u8, (y * 5) as u8, x as u8, (x * y) as u8]
    });
    let cancel = Cancel::never();
    for (width, height) in [(9, 7), (33, 50), (140, 90)] {
        let resize = Resize {
            across: span(10.5, 60.0, width),
            down: span(0.0, 69.0, height),
        };
        let scaling = Scaling::new((90, 70), &resize);
        let whole = scaling.resize(&picture, scaling.whole(), &cancel);
        let mut whole = whole.expect("it is not cancelled");
        for (left, top, width, height) in [(0, 0, 9, 1), (2, 3, 5, 4), (8, 6, 1, 1)] {
            let window = Rectangle {
                left,
                top,
                width,
                height,
            };
            let part = scaling.resize(&picture, window, &cancel);
            let part = part.expect("it is not cancelled");
            let rows = whole
                .rows_of(window)
                .flat_map(|row| row.as_flattened().to_vec());
            assert_eq!(part.pixels, rows.collect::<Vec<u8>>());
        }
    }
}

#[test]
fn what_lies_beyond_the_reach_of_a_change_stays() {
    let before = image(90, 70, |x, y| [(x * 2) as u8, (y * 3) as u8, 9, 255]);
    let changed = Rectangle {
        left: 40,
        top: 20,
        width: 3,
        height: 5,
    };
    let mut after = before.clone();
    for row in after.rows_of(changed) {
        row.fill([255, 0, 255, 70]);
    }
    let cancel = Cancel::never();
    for (width, height) in [(9, 7), (33, 50), (140, 90)] {
        let resize = Resize {
            across: span(0.0, 90.0, width),
            down: span(3.0, 60.0, height),
        };
        let scaling = Scaling::new((90, 70), &resize);
        let reached = scaling.reached_by(changed);
        let resized = |image| scaling.resize(image, scaling.whole(), &cancel);
        let [mut before, mut after] =
            [&before, &after].map(|image| resized(image).expect("not cancelled"));
        assert_ne!(before, after);
        for row in before.rows_of(reached).chain(after.rows_of(reached)) {
            row.fill([0; 4]);
        }
        assert_eq!(before, after, "{width} x {height}");
    }
}

#[test]
fn any_number_of_threads_makes_the_same() {
    let picture = image(3000, 1500, |x, y| {
        [(x * y / 7) as u8, (x / 9) as u8, (y / 3) as u8]
    });
    let resize = Resize {
        across: span(0.0, 3000.0, 300),
        down: span(0.0, 1500.0, 155),
    };
    let cancel = Cancel::never();
    let [one, three] = [1, 3].map(|threads| {
        let resized = resize.apply(&picture, Workers::new(threads, None, &cancel));
        resized.expect("it is not cancelled")
    });
    assert_eq!(one, three);
    let scaling = Scaling::new((3000, 1500), &resize);
    let alone = scaling.resize(&picture, scaling.whole(), &cancel);
    assert_eq!(alone, Ok(one));
}
