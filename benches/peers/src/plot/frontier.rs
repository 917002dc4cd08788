//! BD-rate over CPU time, a dot for each peer: the lower left is where everybody wants to be.

use super::axis::{Axis, percent, short};
use super::published::IRIS_WEBP;
use super::svg::{Anchor, FONT, INK, PALE, Svg};
use super::{conditions, look};
use crate::libwebp::Settings;
use crate::peer::Peer;
use crate::plot::svg::Stroke;
use crate::report::Results;

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 480.0;
const LEFT: f64 = 74.0;
const RIGHT: f64 = WIDTH - 60.0;
const TOP: f64 = 58.0;
const BOTTOM: f64 = HEIGHT - 76.0;
const RADIUS: f64 = 5.5;

struct Dot {
    peer: Peer,
    /// CPU time of the reference's.
    time: f64,
    /// Per cent of bytes more than the reference's.
    rate: f64,
}

/// The SVG file; `None` without times.
pub fn draw(results: &Results) -> Option<String> {
    let every: Vec<usize> = (0..results.plan.pictures.len()).collect();
    let mut dots = Vec::new();
    for (index, peer) in results.plan.peers.iter().enumerate() {
        dots.push(Dot {
            peer: *peer,
            time: results.cpu_ratio(index, &every)?,
            rate: results.mean_bd_rate(index).unwrap_or(0.0) * 100.0,
        });
    }
    dots.sort_by(|a, b| a.time.total_cmp(&b.time));
    let published = IRIS_WEBP.points;
    let times = dots.iter().map(|dot| dot.time);
    let x = Axis::logarithmic(times.chain(published.iter().map(|p| p.0)), (LEFT, RIGHT));
    let rates = dots.iter().map(|dot| dot.rate);
    let y = Axis::linear(rates.chain(published.iter().map(|p| p.1)), (BOTTOM, TOP));
    let mut svg = Svg::new(WIDTH, HEIGHT, "Time and size of the encoders");
    frame(&mut svg, &x, &y);
    svg.small((20.0, HEIGHT - 20.0), Anchor::Start, &conditions(results));

    let place = |dot: &Dot| (x.at(dot.time), y.at(dot.rate));
    let mut taken: Vec<Area> = dots.iter().map(|dot| Area::of_dot(place(dot))).collect();
    for family in [Family::Ours, Family::Theirs, Family::TheirsSharper] {
        let members: Vec<&Dot> = dots
            .iter()
            .filter(|dot| Family::of(dot.peer) == family)
            .collect();
        let line: Vec<_> = members.iter().map(|dot| place(dot)).collect();
        svg.line(&line, family.stroke());
        taken.extend(Area::along(&line));
    }
    let line: Vec<_> = published.iter().map(|p| (x.at(p.0), y.at(p.1))).collect();
    svg.line(&line, IRIS_WEBP.stroke);
    for &place in &line {
        svg.dot(place, RADIUS / 2.0, IRIS_WEBP.stroke.color);
        taken.push(Area::of_dot(place));
    }
    taken.extend(Area::along(&line));
    for dot in &dots {
        svg.dot(place(dot), RADIUS, Family::of(dot.peer).stroke().color);
    }
    for dot in &dots {
        let name = look(dot.peer).name;
        let (at, anchor, area) = free_place(place(dot), &name, &taken);
        taken.push(area);
        svg.bold(at, anchor, Family::of(dot.peer).stroke().color, &name);
    }
    let (at, anchor) = free_place_along(&line, IRIS_WEBP.name, &taken);
    svg.bold(at, anchor, IRIS_WEBP.stroke.color, IRIS_WEBP.name);
    Some(svg.finish())
}

/// What a line joins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Family {
    Ours,
    Theirs,
    TheirsSharper,
}

impl Family {
    fn of(peer: Peer) -> Self {
        match peer {
            Peer::Towebp(_) => Self::Ours,
            Peer::Libwebp(Settings { sharpness: 0, .. }) => Self::Theirs,
            Peer::Libwebp(_) => Self::TheirsSharper,
        }
    }

    fn stroke(self) -> Stroke {
        let (color, width, dashed) = match self {
            Self::Ours => ("#c2410c", 2.5, false),
            Self::Theirs => ("#3d4752", 1.75, false),
            Self::TheirsSharper => ("#7c5cc4", 1.75, true),
        };
        Stroke {
            color,
            width,
            dashed,
        }
    }
}

fn frame(svg: &mut Svg, x: &Axis, y: &Axis) {
    svg.bold(
        (LEFT, TOP - 30.0),
        Anchor::Start,
        INK,
        "Bytes at equal SSIMULACRA2 (BD-rate) over CPU time, both beside libwebp m4",
    );
    for &tick in &x.ticks {
        svg.rule((x.at(tick), TOP), (x.at(tick), BOTTOM), false);
        let text = format!("{} ×", short(tick));
        svg.text((x.at(tick), BOTTOM + 14.0), Anchor::Middle, PALE, &text);
    }
    for &tick in &y.ticks {
        svg.rule((LEFT, y.at(tick)), (RIGHT, y.at(tick)), tick == 0.0);
        svg.text((LEFT - 8.0, y.at(tick)), Anchor::End, PALE, &percent(tick));
    }
    svg.text((LEFT, BOTTOM + 34.0), Anchor::Start, PALE, "← faster");
    svg.text(
        (f64::midpoint(LEFT, RIGHT), BOTTOM + 34.0),
        Anchor::Middle,
        PALE,
        "CPU time of libwebp m4, one thread (logarithmic)",
    );
    svg.text(
        (LEFT + 8.0, BOTTOM - 12.0),
        Anchor::Start,
        PALE,
        "↓ smaller",
    );
    svg.rule((LEFT, BOTTOM), (RIGHT, BOTTOM), true);
}

/// A rectangle that is drawn on.
#[derive(Clone, Copy, Debug)]
struct Area {
    x: (f64, f64),
    y: (f64, f64),
}

impl Area {
    fn of_dot((x, y): (f64, f64)) -> Self {
        Self {
            x: (x - RADIUS, x + RADIUS),
            y: (y - RADIUS, y + RADIUS),
        }
    }

    /// Small ones along a line.
    fn along(line: &[(f64, f64)]) -> Vec<Self> {
        const STEPS: usize = 60;
        line.windows(2)
            .flat_map(|ends| {
                (0..=STEPS).map(|i| {
                    let part = i as f64 / STEPS as f64;
                    let x = ends[0].0 + (ends[1].0 - ends[0].0) * part;
                    let y = ends[0].1 + (ends[1].1 - ends[0].1) * part;
                    Self {
                        x: (x - 1.0, x + 1.0),
                        y: (y - 1.0, y + 1.0),
                    }
                })
            })
            .collect()
    }

    fn meets(&self, other: &Self) -> bool {
        self.x.0 < other.x.1 && other.x.0 < self.x.1 && self.y.0 < other.y.1 && other.y.0 < self.y.1
    }
}

/// Beside, above or below one of the dots of a line, wherever least is in the way.
fn free_place_along(line: &[(f64, f64)], text: &str, taken: &[Area]) -> ((f64, f64), Anchor) {
    let places = line.iter().map(|&dot| free_place(dot, text, taken));
    let (at, anchor, _) = places
        .min_by_key(|(_, _, area)| in_the_way(area, taken))
        .expect("a line has dots");
    (at, anchor)
}

/// Beside, above or below a dot, wherever least is in the way.
fn free_place((x, y): (f64, f64), text: &str, taken: &[Area]) -> ((f64, f64), Anchor, Area) {
    let width = text.chars().count() as f64 * FONT * 0.62;
    let (beside, above) = (RADIUS + 6.0, RADIUS + FONT * 0.8);
    let places = [
        (x + beside, y, Anchor::Start),
        (x - beside, y, Anchor::End),
        (x, y - above, Anchor::Middle),
        (x, y + above, Anchor::Middle),
        (x + beside, y - above, Anchor::Start),
        (x - beside, y + above, Anchor::End),
        (x + beside, y + above, Anchor::Start),
        (x - beside, y - above, Anchor::End),
    ];
    let areas = places.map(|(x, y, anchor)| {
        let left = match anchor {
            Anchor::Start => x,
            Anchor::Middle => x - width / 2.0,
            Anchor::End => x - width,
        };
        let area = Area {
            x: (left, left + width),
            y: (y - FONT * 0.6, y + FONT * 0.6),
        };
        ((x, y), anchor, area)
    });
    areas
        .into_iter()
        .min_by_key(|(_, _, area)| in_the_way(area, taken))
        .expect("there are places")
}

/// How much of what is taken a label there would hide; most of all the frame.
fn in_the_way(area: &Area, taken: &[Area]) -> usize {
    let outside = area.x.0 < LEFT || area.x.1 > WIDTH - 8.0 || area.y.0 < TOP || area.y.1 > BOTTOM;
    let met = taken.iter().filter(|other| area.meets(other)).count();
    if outside { met + 1000 } else { met }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_keeps_off_what_is_there() {
        let dot = (400.0, 200.0);
        let (at, anchor, free) = free_place(dot, "name", &[]);
        assert_eq!((at.0 > dot.0, anchor), (true, Anchor::Start));
        let (_, anchor, other) = free_place(dot, "name", &[free]);
        assert_eq!(anchor, Anchor::End);
        assert!(!other.meets(&free), "{other:?} {free:?}");
    }
}
