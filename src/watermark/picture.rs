//! A picture over an image.

use super::blend::{blend_row, weight};
use super::color::Color;
use super::position::Position;
use super::scale::{fit, scale_down};
use crate::image::{Cancelled, Image, Patience};

/// Draws `picture`, scaled down to fit if it must be, at an opacity of 0 to 100.
///
/// # Errors
/// [`Cancelled`]; the image may then have a part of it.
pub fn draw_picture(
    image: &mut Image,
    picture: &Image,
    position: Position,
    opacity: u8,
    patience: &Patience<'_>,
) -> Result<(), Cancelled> {
    let image_size = (image.width, image.height);
    let size = fit((picture.width, picture.height), position.room(image_size));
    let (left, top) = position.place(image_size, size);
    let mark = scale_down(picture, size, patience)?;
    let channels = mark.layout.channels();
    for (y, row) in (top..).zip(mark.pixels.chunks_exact(mark.width as usize * channels)) {
        patience.check()?;
        blend_row(image, left, y, mark.width, |x| {
            let pixel = &row[x * channels..][..channels];
            let alpha = pixel.get(3).copied().unwrap_or(255);
            (
                Color::new(pixel[0], pixel[1], pixel[2]),
                weight(alpha, opacity),
            )
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::Layout;

    fn draw(image: &mut Image, picture: &Image, position: Position, opacity: u8) {
        draw_picture(image, picture, position, opacity, &Patience::endless())
            .expect("nobody leaves");
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
            Position::BottomRight,
            100,
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
            Position::Center,
            100,
        );
        assert_eq!(pixel(&image, 4, 4), [0, 0, 0]);
        draw(
            &mut image,
            &plain(1, 1, &[255, 255, 255, 128]),
            Position::Center,
            50,
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
            Position::Center,
            0,
        );
        assert_eq!(image, before);
    }

    #[test]
    fn a_larger_picture_is_scaled_into_the_margins() {
        let mut image = plain(100, 64, &[0, 0, 0]);
        draw(
            &mut image,
            &plain(500, 500, &[255, 255, 255]),
            Position::TopLeft,
            100,
        );
        // Margin 8, so the room is 84 x 48 and the square becomes 48 x 48.
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
            draw(&mut image, &plain(30, 20, &[255, 255, 255]), position, 100);
            assert_eq!(image.pixels, [255, 255, 255], "{position:?}");
        }
    }
}
