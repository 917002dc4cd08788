//! Which crops of a picture a sheet shows: those where an encoder's faults are seen first.

use crate::blocks;
use crate::picture::Picture;

/// Width and height of a crop in pixels.
pub const SIDE: u32 = 160;
/// Distance between the crops that are looked at.
const STEP: u32 = 80;
/// Luma and chroma are looked at every so many pixels.
const SAMPLING: u32 = 2;

/// Squares of 16 x 16 pixels in a row of a crop.
const SQUARES: usize = (SIDE / 16) as usize;

/// A crop's upper left corner in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub x: u32,
    pub y: u32,
}

/// A crop and why it was chosen.
#[derive(Debug)]
pub struct Crop {
    pub name: &'static str,
    pub place: Place,
}

/// A rule that chooses the crop with the highest score.
struct Rule {
    name: &'static str,
    score: fn(&Features) -> f64,
    /// Below this score the picture has nothing of the kind.
    least: f64,
}

const RULES: [Rule; 5] = [
    // Skies and walls: no edges, and luma that changes slowly.
    Rule {
        name: "smooth",
        score: |f| f.calm.powi(2) * f.shading.min(16.0),
        least: 1.0,
    },
    Rule {
        name: "skin",
        score: |f| f.skin * f.calm,
        least: 0.25,
    },
    Rule {
        name: "saturated edge",
        score: |f| f.chroma_steps,
        least: 0.5,
    },
    // Foliage, grass, gravel.
    Rule {
        name: "busy",
        score: |f| f.texture,
        least: 4.0,
    },
    // Hard edges on even ground.
    Rule {
        name: "text",
        score: |f| f.hard * f.even,
        least: 0.005,
    },
];

/// What the rules look at; shares are of the samples of a crop.
#[derive(Clone, Copy, Debug, Default)]
struct Features {
    /// Share whose luma differs by less than 5 from their neighbors'.
    calm: f64,
    /// Share whose luma differs by at most 1.
    even: f64,
    /// Share whose luma differs by more than 60.
    hard: f64,
    /// Mean difference of luma, each at most 40.
    texture: f64,
    /// Standard deviation of the mean luma of squares of 16 x 16 pixels.
    shading: f64,
    /// Share with the chroma of skin.
    skin: f64,
    /// Mean difference of chroma over four pixels.
    chroma_steps: f64,
}

/// For each rule the best crop that has little in common with those before it.
pub fn choose(picture: &Picture) -> Vec<Crop> {
    let planes = blocks::planes(picture);
    let last = |length: u32| length.saturating_sub(SIDE) / STEP;
    let (last_x, last_y) = (last(picture.width), last(picture.height));
    let looked_at: Vec<(Place, Features)> = (0..=last_y)
        .flat_map(|y| (0..=last_x).map(move |x| (x * STEP, y * STEP)))
        .map(|(x, y)| Place { x, y })
        .map(|place| (place, features(picture, &planes, place)))
        .collect();
    let mut crops: Vec<Crop> = Vec::new();
    for rule in &RULES {
        let best = looked_at
            .iter()
            .filter(|(place, _)| crops.iter().all(|crop| !overlap(crop.place, *place)))
            .map(|(place, features)| ((rule.score)(features), *place))
            .max_by(|a, b| a.0.total_cmp(&b.0));
        if let Some((score, place)) = best
            && score >= rule.least
        {
            crops.push(Crop {
                name: rule.name,
                place,
            });
        }
    }
    crops
}

/// Whether two crops share a quarter or more.
fn overlap(a: Place, b: Place) -> bool {
    a.x.abs_diff(b.x) <= SIDE / 2 && a.y.abs_diff(b.y) <= SIDE / 2
}

fn features(picture: &Picture, planes: &[Vec<f32>; 3], place: Place) -> Features {
    let at = |plane: usize, x: u32, y: u32| {
        let (x, y) = (x.min(picture.width - 1), y.min(picture.height - 1));
        f64::from(planes[plane][y as usize * picture.width as usize + x as usize])
    };
    let mut sums = Features::default();
    let mut squares = [0.0; SQUARES * SQUARES];
    for dy in (0..SIDE).step_by(SAMPLING as usize) {
        for dx in (0..SIDE).step_by(SAMPLING as usize) {
            let (x, y) = (place.x + dx, place.y + dy);
            let luma = at(0, x, y);
            let step = f64::max(
                (at(0, x + 1, y) - luma).abs(),
                (at(0, x, y + 1) - luma).abs(),
            );
            let share = |is: bool| f64::from(u8::from(is));
            sums.calm += share(step < 5.0);
            sums.even += share(step <= 1.0);
            sums.hard += share(step > 60.0);
            sums.texture += step.min(40.0);
            let (cb, cr) = (at(1, x, y), at(2, x, y));
            let is_skin = (60.0..235.0).contains(&luma)
                && (-40.0..-4.0).contains(&cb)
                && (6.0..40.0).contains(&cr);
            sums.skin += share(is_skin);
            sums.chroma_steps += (at(1, x + 4, y) - cb).abs()
                + (at(2, x + 4, y) - cr).abs()
                + (at(1, x, y + 4) - cb).abs()
                + (at(2, x, y + 4) - cr).abs();
            squares[(dy / 16) as usize * SQUARES + (dx / 16) as usize] += luma;
        }
    }
    let samples = f64::from((SIDE / SAMPLING).pow(2));
    let in_square = samples / squares.len() as f64;
    let means = squares.map(|sum| sum / in_square);
    let middle = means.iter().sum::<f64>() / means.len() as f64;
    let variance = means
        .iter()
        .map(|mean| (mean - middle).powi(2))
        .sum::<f64>();
    Features {
        calm: sums.calm / samples,
        even: sums.even / samples,
        hard: sums.hard / samples,
        texture: sums.texture / samples,
        shading: (variance / means.len() as f64).sqrt(),
        skin: sums.skin / samples,
        chroma_steps: sums.chroma_steps / samples,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_found_where_it_is() {
        // From left to right: a slow ramp, noise, and red beside blue; each 240 pixels wide.
        let (width, height) = (720, 160);
        let pixels = (0..width * height)
            .flat_map(|i: u32| {
                let (x, y) = (i % width, i / width);
                match x / 240 {
                    0 => [(x / 3 + y / 2) as u8; 3],
                    1 => [((x * 7919 + y * 104_729) % 37 * 4) as u8; 3],
                    _ if (x / 8) % 2 == 0 => [220, 30, 30],
                    _ => [30, 30, 220],
                }
            })
            .collect();
        let picture = Picture {
            width,
            height,
            pixels,
        };
        let crops = choose(&picture);
        let find = |name| {
            let crop = crops.iter().find(|crop| crop.name == name);
            crop.unwrap_or_else(|| panic!("{name} in {crops:?}"))
                .place
                .x
        };
        assert!(find("smooth") <= 80, "{crops:?}");
        assert!((240..=320).contains(&find("busy")), "{crops:?}");
        assert!(find("saturated edge") >= 480, "{crops:?}");
        assert!(crops.iter().all(|crop| crop.name != "skin"), "{crops:?}");
    }
}
