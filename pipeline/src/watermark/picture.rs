//! Pictures as watermarks.

use super::placement::Placement;
use super::position::Size;
use super::rotation::Rotation;
use super::scale::{fit, rotated, scale};
use super::stamp::Stamp;
use crate::image::Image;
use towebp_encoder::{Cancel, Cancelled};

/// Draws `picture`, scaled by the placement, or further down if it does not fit.
///
/// # Errors
/// [`Cancelled`]; the image may then have a part of it.
pub fn draw_picture(
    image: &mut Image,
    picture: &Image,
    placement: &Placement,
    cancel: &Cancel<'_>,
) -> Result<(), Cancelled> {
    let image_size = (image.width, image.height);
    let (stamp, size) = prepare_picture(picture, placement, image_size, cancel)?;
    stamp.put(image, placement, size, cancel)
}

/// The picture as a stamp on an image of this size, and its size before it was rotated.
pub(super) fn prepare_picture<'a>(
    picture: &'a Image,
    placement: &Placement,
    image: Size,
    cancel: &Cancel<'_>,
) -> Result<(Stamp<'a>, Size), Cancelled> {
    let asked = match placement.width(image) {
        None => (picture.width, picture.height),
        Some(width) => (width, proportional_height(picture, width)),
    };
    let rotation = placement.rotation();
    let size = fit_rotated(asked, rotation, placement.available(image));
    let mark = rotated(scale(picture, size, cancel)?, rotation, cancel)?;
    Ok((Stamp::Picture(mark), size))
}

fn proportional_height(picture: &Image, width: u32) -> u32 {
    let (old_width, old_height) = (u64::from(picture.width), u64::from(picture.height));
    let height = (u64::from(width) * old_height + old_width / 2) / old_width;
    height.max(1) as u32 // sides have 14 bits each
}

/// The largest size of the same proportions whose rotated rectangle fits into `available`, never
/// larger than `size`.
fn fit_rotated(size: Size, rotation: Rotation, available: Size) -> Size {
    if rotation.is_identity() {
        return fit(size, available);
    }
    let (width, height) = rotation.bounds((f64::from(size.0), f64::from(size.1)));
    let ratio = (f64::from(available.0) / width).min(f64::from(available.1) / height);
    if ratio >= 1.0 {
        return size;
    }
    let scaled = |side: u32| ((f64::from(side) * ratio) as u32).max(1);
    (scaled(size.0), scaled(size.1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::Layout;
    use crate::watermark::{Length, Position};

    fn at(position: Position) -> Placement {
        Placement {
            position,
            opacity: 100,
            ..Placement::default()
        }
    }

    fn draw(image: &mut Image, picture: &Image, placement: &Placement) {
        draw_picture(image, picture, placement, &Cancel::never()).expect("it is not cancelled");
    }

    fn plain(width: u32, height: u32, pixel: &[u8]) -> Image {
        let layout = if pixel.len() == 3 {
            Layout::Rgb
        } else {
            Layout::Rgba
        };
        Image {
            width,
            height,
            layout,
            pixels: pixel.repeat((width * height) as usize),
        }
    }

    fn pixel(image: &Image, x: u32, y: u32) -> &[u8] {
        let channels = image.layout.channels();
        &image.pixels[(y * image.width + x) as usize * channels..][..channels]
    }

    #[test]
    fn it_covers_its_place_and_nothing_else() {
        let mut image = plain(64, 64, &[10, 20, 30]);
        draw(
            &mut image,
            &plain(4, 3, &[200, 100, 50]),
            &at(Position::BottomRight),
        );
        for y in 0..64 {
            for x in 0..64 {
                // The margin is 8: the mark ends before column and row 56.
                let inside = (52..56).contains(&x) && (53..56).contains(&y);
                let expected: &[u8] = if inside {
                    &[200, 100, 50]
                } else {
                    &[10, 20, 30]
                };
                assert_eq!(pixel(&image, x, y), expected, "at {x}, {y}");
            }
        }
    }

    #[test]
    fn its_own_transparency_counts() {
        let mut image = plain(9, 9, &[0, 0, 0]);
        draw(
            &mut image,
            &plain(1, 1, &[255, 255, 255, 0]),
            &at(Position::Center),
        );
        assert_eq!(pixel(&image, 4, 4), [0, 0, 0]);
        draw(
            &mut image,
            &plain(1, 1, &[255, 255, 255, 128]),
            &Placement {
                opacity: 50,
                ..at(Position::Center)
            },
        );
        assert_eq!(pixel(&image, 4, 4), [64, 64, 64]);
    }

    #[test]
    fn opacity_0_changes_nothing_even_under_alpha() {
        let before = plain(33, 21, &[9, 8, 7, 6]);
        let mut image = before.clone();
        draw(
            &mut image,
            &plain(100, 100, &[255, 0, 0]),
            &Placement {
                opacity: 0,
                ..at(Position::Center)
            },
        );
        assert_eq!(image, before);
    }

    #[test]
    fn a_larger_picture_is_scaled_into_the_margins() {
        let mut image = plain(100, 64, &[0, 0, 0]);
        draw(
            &mut image,
            &plain(500, 500, &[255, 255, 255]),
            &at(Position::TopLeft),
        );
        // The margin is 8, so 84 x 48 are available and the square becomes 48 x 48.
        let white = image
            .pixels
            .chunks_exact(3)
            .filter(|pixel| pixel[0] == 255)
            .count();
        assert_eq!(white, 48 * 48);
        assert_eq!(
            (pixel(&image, 8, 8)[0], pixel(&image, 55, 55)[0]),
            (255, 255)
        );
        assert_eq!((pixel(&image, 7, 8)[0], pixel(&image, 56, 55)[0]), (0, 0));
    }

    #[test]
    fn an_image_of_one_pixel_takes_any_picture() {
        for position in [Position::TopLeft, Position::BottomRight, Position::Center] {
            let mut image = plain(1, 1, &[0, 0, 0]);
            draw(&mut image, &plain(30, 20, &[255, 255, 255]), &at(position));
            assert_eq!(image.pixels, [255, 255, 255], "{position:?}");
        }
    }

    #[test]
    fn scale_gives_it_a_share_of_the_width_up_and_down() {
        for (percent, width, height) in [(10, 20, 10), (20, 40, 20), (50, 100, 50)] {
            let mut image = plain(200, 100, &[0, 0, 0]);
            let placement = Placement {
                scale: Some(percent),
                margin: Some(Length::Pixels(0)),
                ..at(Position::Center)
            };
            draw(&mut image, &plain(40, 20, &[255, 0, 9]), &placement);
            let drawn: Vec<u32> = (0..200 * 100)
                .filter(|i| image.pixels[*i as usize * 3..][..3] == [255, 0, 9])
                .collect();
            assert_eq!(drawn.len() as u32, width * height, "{percent} %");
            assert_eq!(
                drawn[0],
                (100 - height) / 2 * 200 + (200 - width) / 2,
                "{percent} %"
            );
        }
    }

    #[test]
    fn a_scale_that_does_not_fit_ends_at_the_margins() {
        let mut image = plain(200, 100, &[0, 0, 0]);
        let placement = Placement {
            scale: Some(100),
            margin: Some(Length::Pixels(10)),
            ..at(Position::BottomRight)
        };
        draw(&mut image, &plain(10, 10, &[255, 255, 255]), &placement);
        let pixels = image.pixels.as_chunks::<3>().0;
        let white = pixels.iter().filter(|pixel| **pixel == [255; 3]).count();
        assert_eq!(white, 80 * 80);
        assert_eq!(pixel(&image, 110, 10), [255, 255, 255]);
        assert_eq!(pixel(&image, 189, 89), [255, 255, 255]);
    }

    #[test]
    fn quarter_turns_move_every_pixel_exactly() {
        let mark = Image {
            width: 2,
            height: 1,
            layout: Layout::Rgb,
            pixels: vec![250, 10, 20, 30, 40, 250],
        };
        let (first, second) = ([250, 10, 20], [30, 40, 250]);
        for (rotate, ends) in [
            (0, [(8, 8, first), (9, 8, second)]),
            (90, [(8, 8, first), (8, 9, second)]),
            (180, [(8, 8, second), (9, 8, first)]),
            (-90, [(8, 8, second), (8, 9, first)]),
        ] {
            let mut image = plain(64, 64, &[0, 0, 0]);
            let placement = Placement {
                rotate,
                ..at(Position::TopLeft)
            };
            draw(&mut image, &mark, &placement);
            for (x, y, color) in ends {
                assert_eq!(pixel(&image, x, y), color, "{rotate} at {x}, {y}");
            }
            let drawn = image.pixels.iter().filter(|&&sample| sample != 0).count();
            assert_eq!(drawn, 6, "{rotate}");
        }
    }

    #[test]
    fn a_rotated_picture_keeps_its_area_and_has_smooth_edges() {
        let mut image = plain(200, 200, &[0, 0, 0]);
        let placement = Placement {
            rotate: 30,
            ..at(Position::Center)
        };
        draw(&mut image, &plain(80, 40, &[255, 255, 255]), &placement);
        let reds = || image.pixels.iter().step_by(3);
        let area: f64 = reds().map(|&red| f64::from(red) / 255.0).sum();
        assert!((area - 3200.0).abs() < 20.0, "{area}");
        let partial = reds().filter(|&&red| red != 0 && red != 255).count();
        assert!(partial > 150, "{partial} pixels between nothing and full");
        assert_eq!(pixel(&image, 100, 100), [255, 255, 255]);
        // 39 to the right along the long side is inside, 41 is not: cos 30 is 0.87, sin 30 is 0.5.
        assert_eq!(pixel(&image, 133, 119), [255, 255, 255]);
        assert_eq!(pixel(&image, 137, 121), [0, 0, 0]);
        assert_eq!(pixel(&image, 133, 80), [0, 0, 0], "it rotates clockwise");
    }

    #[test]
    fn a_rotated_picture_that_is_too_large_is_scaled_into_the_margins() {
        for rotate in [-360, -181, -45, 1, 44, 45, 89, 91, 300, 360] {
            let mut image = plain(120, 90, &[0, 0, 0]);
            let placement = Placement {
                rotate,
                ..at(Position::Center)
            };
            let placement = Placement {
                margin: Some(Length::Pixels(7)),
                ..placement
            };
            draw(&mut image, &plain(500, 300, &[255, 255, 255]), &placement);
            for y in 0..90 {
                for x in 0..120 {
                    let inside = (7..113).contains(&x) && (7..83).contains(&y);
                    let drawn = pixel(&image, x, y)[0] != 0;
                    assert!(inside || !drawn, "{rotate}: drawn at {x}, {y}");
                }
            }
            assert_eq!(pixel(&image, 60, 45)[0], 255, "{rotate}");
        }
    }

    #[test]
    fn opacity_is_exact_at_both_ends_for_rotated_tiles() {
        let before = plain(90, 70, &[9, 8, 7]);
        let mark = plain(20, 10, &[200, 100, 50, 255]);
        for opacity in [0, 100] {
            let mut image = before.clone();
            let placement = Placement {
                rotate: -30,
                is_tiled: true,
                opacity,
                ..Placement::default()
            };
            draw(&mut image, &mark, &placement);
            if opacity == 0 {
                assert_eq!(image, before);
            } else {
                let solid = image.pixels.chunks(3).filter(|p| *p == [200, 100, 50]);
                assert!(solid.count() > 1000, "tiles have solid middles");
                assert_eq!(
                    pixel(&image, 45, 35),
                    [200, 100, 50],
                    "one is in the middle"
                );
            }
        }
    }
}
