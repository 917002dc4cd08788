//! SSIMULACRA2 over bits per pixel, and beside it what the curves hide since they lie so close:
//! bytes beside the reference at equal SSIMULACRA2.

use super::axis::{Axis, percent, short};
use super::svg::{Anchor, FONT, INK, PALE, Svg};
use super::{Look, Mean, conditions, look, mean_curve};
use crate::curve::Pchip;
use crate::libwebp::Settings;
use crate::peer::{Peer, REFERENCE};
use crate::report::Results;

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 440.0;
const TOP: f64 = 58.0;
const BOTTOM: f64 = HEIGHT - 76.0;
/// Left and right end of the two fields.
const CURVES: (f64, f64) = (52.0, 400.0);
const SAVINGS: (f64, f64) = (482.0, 690.0);

struct Curve {
    look: Look,
    points: Vec<Mean>,
    is_reference: bool,
}

/// The SVG file.
pub fn draw(results: &Results) -> String {
    let curves: Vec<Curve> = results
        .plan
        .peers
        .iter()
        .enumerate()
        .filter(|(_, peer)| is_shown(**peer))
        .map(|(index, peer)| Curve {
            look: look(*peer),
            points: mean_curve(results, index),
            is_reference: *peer == REFERENCE,
        })
        .collect();
    let mut svg = Svg::new(WIDTH, HEIGHT, "Rate-distortion curves");
    let scores = curves
        .iter()
        .flat_map(|c| c.points.iter().map(|p| p.ssimulacra2));
    let score_axis = Axis::linear(scores.clone(), (BOTTOM, TOP));
    draw_curves(&mut svg, &curves, &score_axis);
    draw_savings(&mut svg, &curves, &Axis::linear(scores, SAVINGS));
    svg.small(
        (CURVES.0 - 32.0, HEIGHT - 20.0),
        Anchor::Start,
        &conditions(results),
    );
    svg.finish()
}

/// More of libwebp would only blur.
fn is_shown(peer: Peer) -> bool {
    match peer {
        Peer::Libwebp(Settings { method, sharpness }) => {
            matches!((method, sharpness), (4, 0 | 7) | (6, 0))
        }
        Peer::Towebp(_) => true,
    }
}

fn draw_curves(svg: &mut Svg, curves: &[Curve], y: &Axis) {
    let bits = curves
        .iter()
        .flat_map(|c| c.points.iter().map(|p| p.bits_per_pixel));
    let x = Axis::logarithmic(bits, CURVES);
    svg.bold(
        (CURVES.0, TOP - 30.0),
        Anchor::Start,
        INK,
        "SSIMULACRA2 over bits per pixel",
    );
    frame(svg, &x, y, CURVES, short, short);
    svg.text(
        (f64::midpoint(CURVES.0, CURVES.1), BOTTOM + 34.0),
        Anchor::Middle,
        PALE,
        "bits per pixel (logarithmic)",
    );
    for curve in curves {
        let line: Vec<_> = curve
            .points
            .iter()
            .map(|p| (x.at(p.bits_per_pixel), y.at(p.ssimulacra2)))
            .collect();
        svg.line(&line, curve.look.stroke);
        for point in line {
            svg.dot(point, 3.0, curve.look.stroke.color);
        }
    }
    label_outermost(svg, curves, &x, y);
}

/// Those at the left and the right: between them there is no room.
fn label_outermost(svg: &mut Svg, curves: &[Curve], x: &Axis, y: &Axis) {
    let place = |point: &Mean| (x.at(point.bits_per_pixel), y.at(point.ssimulacra2));
    let middle = |curve: &Curve| place(&curve.points[curve.points.len() / 2]);
    if let Some(left) = curves
        .iter()
        .min_by(|a, b| middle(a).0.total_cmp(&middle(b).0))
    {
        let at = (middle(left).0 - 10.0, middle(left).1 - 6.0);
        svg.bold(at, Anchor::End, left.look.stroke.color, &left.look.name);
    }
    if let Some(right) = curves.iter().find(|curve| curve.is_reference) {
        let foot = place(&right.points[0]);
        let at = (foot.0 + 10.0, foot.1 - 2.0);
        svg.bold(at, Anchor::Start, right.look.stroke.color, &right.look.name);
    }
}

fn draw_savings(svg: &mut Svg, curves: &[Curve], x: &Axis) {
    let Some(reference) = curves.iter().find(|c| c.is_reference).and_then(pchip) else {
        return;
    };
    let lines: Vec<(&Curve, Vec<(f64, f64)>)> = curves
        .iter()
        .filter_map(|curve| Some((curve, savings(&pchip(curve)?, &reference))))
        .collect();
    let y = Axis::linear(
        lines.iter().flat_map(|(_, line)| line.iter().map(|p| p.1)),
        (BOTTOM, TOP),
    );
    svg.bold(
        (SAVINGS.0, TOP - 30.0),
        Anchor::Start,
        INK,
        "Bytes at equal SSIMULACRA2, beside libwebp m4",
    );
    frame(svg, x, &y, SAVINGS, short, percent);
    svg.text(
        (f64::midpoint(SAVINGS.0, SAVINGS.1), BOTTOM + 34.0),
        Anchor::Middle,
        PALE,
        "SSIMULACRA2",
    );
    let mut labels = Vec::new();
    for (curve, line) in lines {
        let line: Vec<_> = line.iter().map(|p| (x.at(p.0), y.at(p.1))).collect();
        svg.line(&line, curve.look.stroke);
        if let Some(&(_, end)) = line.last() {
            labels.push((end, &curve.look));
        }
    }
    labels.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut free = TOP;
    for (end, look) in labels {
        let at = end.max(free);
        free = at + FONT + 4.0;
        svg.bold(
            (SAVINGS.1 + 8.0, at),
            Anchor::Start,
            look.stroke.color,
            &look.name,
        );
    }
}

/// Grid, ticks and axes.
fn frame(
    svg: &mut Svg,
    x: &Axis,
    y: &Axis,
    (left, right): (f64, f64),
    x_text: impl Fn(f64) -> String,
    y_text: impl Fn(f64) -> String,
) {
    for &tick in &x.ticks {
        svg.rule((x.at(tick), TOP), (x.at(tick), BOTTOM), false);
        svg.text(
            (x.at(tick), BOTTOM + 14.0),
            Anchor::Middle,
            PALE,
            &x_text(tick),
        );
    }
    for &tick in &y.ticks {
        svg.rule((left, y.at(tick)), (right, y.at(tick)), false);
        svg.text((left - 7.0, y.at(tick)), Anchor::End, PALE, &y_text(tick));
    }
    svg.rule((left, BOTTOM), (right, BOTTOM), true);
}

fn pchip(curve: &Curve) -> Option<Pchip> {
    let points: Vec<_> = curve
        .points
        .iter()
        .map(|p| (p.ssimulacra2, p.bits_per_pixel))
        .collect();
    Pchip::new(&points)
}

/// SSIMULACRA2, and per cent of bytes more than the reference's, where both curves are.
fn savings(curve: &Pchip, reference: &Pchip) -> Vec<(f64, f64)> {
    const STEPS: usize = 60;
    let (low, high) = (
        curve.first().max(reference.first()),
        curve.last().min(reference.last()),
    );
    (0..=STEPS)
        .map(|i| low + (high - low) * i as f64 / STEPS as f64)
        .map(|score| {
            let more = (curve.at(score) - reference.at(score)).exp_m1();
            (score, more * 100.0)
        })
        .collect()
}
