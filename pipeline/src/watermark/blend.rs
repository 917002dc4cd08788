//! One color over a pixel: the Porter-Duff operator source-over, in sRGB, as in browsers.
//!
//! It is integer arithmetic. The source's weight is its coverage or alpha (0 to 255) times the
//! opacity (0 to 100), so that 0 leaves the pixel unchanged and [`FULL`] makes it exactly the
//! source.

use super::color::Color;
use crate::image::{Image, Layout};

/// The weight of a source that covers the pixel entirely.
pub(super) const FULL: u32 = 255 * 100;

/// The weight of a source of some coverage or alpha at an opacity of 0 to 100.
pub(super) fn weight(coverage: u8, opacity: u8) -> u32 {
    u32::from(coverage) * u32::from(opacity.min(100))
}

/// Blends `count` pixels from (`x`, `y`) to the right; `source` gives the color and weight of each.
/// Pixels outside of the image are left out.
pub(super) fn blend_row(
    image: &mut Image,
    x: u32,
    y: u32,
    count: u32,
    source: impl Fn(usize) -> (Color, u32),
) {
    if x >= image.width || y >= image.height {
        return;
    }
    let channels = image.layout.channels();
    let start = (y as usize * image.width as usize + x as usize) * channels;
    let visible = count.min(image.width - x) as usize;
    let row = &mut image.pixels[start..start + visible * channels];
    match image.layout {
        Layout::Rgb => {
            for (index, pixel) in row.as_chunks_mut().0.iter_mut().enumerate() {
                let (color, weight) = source(index);
                over_opaque(pixel, color, weight);
            }
        }
        Layout::Rgba => {
            for (index, pixel) in row.as_chunks_mut().0.iter_mut().enumerate() {
                let (color, weight) = source(index);
                over(pixel, color, weight);
            }
        }
    }
}

fn over_opaque(pixel: &mut [u8; 3], color: Color, weight: u32) {
    // The most frequent case: the pixels between the letters of a text.
    if weight == 0 {
        return;
    }
    for (under, source) in pixel.iter_mut().zip([color.red, color.green, color.blue]) {
        *under = mix(source, weight, *under, FULL - weight);
    }
}

fn over(pixel: &mut [u8; 4], color: Color, weight: u32) {
    if weight == 0 {
        return;
    }
    let [red, green, blue, alpha] = pixel;
    // Alpha times FULL, of the source and of the visible part of the pixel under it.
    let source_part = 255 * weight;
    let under_part = u32::from(*alpha) * (FULL - weight);
    for (under, source) in [red, green, blue]
        .into_iter()
        .zip([color.red, color.green, color.blue])
    {
        *under = mix(source, source_part, *under, under_part);
    }
    *alpha = ((source_part + under_part + FULL / 2) / FULL) as u8;
}

/// The weighted mean of two samples, to the nearest. The weights are not both 0; their sum times
/// 255 fits 32 bits.
fn mix(first: u8, first_weight: u32, second: u8, second_weight: u32) -> u8 {
    let sum = first_weight + second_weight;
    ((u32::from(first) * first_weight + u32::from(second) * second_weight + sum / 2) / sum) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORANGE: Color = Color::new(250, 130, 7);

    #[test]
    fn no_weight_leaves_every_pixel_and_full_weight_replaces_it() {
        for sample in 0..=255 {
            let mut opaque = [sample, 255 - sample, 3];
            over_opaque(&mut opaque, ORANGE, 0);
            assert_eq!(opaque, [sample, 255 - sample, 3]);
            over_opaque(&mut opaque, ORANGE, FULL);
            assert_eq!(opaque, [250, 130, 7]);

            let mut pixel = [sample, 255 - sample, 3, sample];
            over(&mut pixel, ORANGE, 0);
            assert_eq!(pixel, [sample, 255 - sample, 3, sample]);
            over(&mut pixel, ORANGE, FULL);
            assert_eq!(pixel, [250, 130, 7, 255]);
        }
    }

    #[test]
    fn half_opacity_is_rounded_to_the_nearest() {
        let mut pixel = [0, 255, 10];
        over_opaque(&mut pixel, Color::WHITE, weight(255, 50));
        assert_eq!(pixel, [128, 255, 133]); // 127.5 and 132.5 go up
    }

    #[test]
    fn on_a_transparent_pixel_the_color_is_the_source_alone() {
        let mut pixel = [200, 200, 200, 0];
        over(&mut pixel, ORANGE, weight(255, 50));
        assert_eq!(pixel, [250, 130, 7, 128]);
    }

    #[test]
    fn on_a_translucent_pixel_both_weigh_by_their_visible_parts() {
        // Source alpha 0.5 over alpha 0.4: 0.5 + 0.2 = 0.7; white weighs 5/7.
        let mut pixel = [0, 0, 0, 102];
        over(&mut pixel, Color::WHITE, weight(255, 50));
        assert_eq!(pixel, [182, 182, 182, 179]); // 255 * 5/7 = 182.1; 255 * 0.7 = 178.5
    }

    #[test]
    fn all_weights_agree_with_the_formula_and_nothing_overflows() {
        for alpha in [0u8, 1, 127, 254, 255] {
            for coverage in [0u8, 1, 128, 255] {
                for opacity in [0u8, 1, 50, 99, 100] {
                    let mut pixel = [255, 0, 77, alpha];
                    over(&mut pixel, ORANGE, weight(coverage, opacity));
                    let source = f64::from(coverage) * f64::from(opacity) / 25500.0;
                    let under = f64::from(alpha) / 255.0 * (1.0 - source);
                    let expected = if source == 0.0 {
                        f64::from(alpha)
                    } else {
                        255.0 * (source + under)
                    };
                    assert!(
                        (f64::from(pixel[3]) - expected).abs() <= 0.501,
                        "alpha {alpha}, coverage {coverage}, opacity {opacity}: {} for {expected}",
                        pixel[3]
                    );
                }
            }
        }
    }

    #[test]
    fn rows_are_clipped_at_the_images_edge() {
        let mut image = Image {
            width: 2,
            height: 2,
            layout: Layout::Rgb,
            pixels: vec![0; 12],
        };
        blend_row(&mut image, 1, 1, 5, |_| (Color::WHITE, FULL));
        blend_row(&mut image, 2, 0, 5, |_| (Color::WHITE, FULL));
        blend_row(&mut image, 0, 2, 5, |_| (Color::WHITE, FULL));
        assert_eq!(image.pixels, [0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255]);
    }
}
