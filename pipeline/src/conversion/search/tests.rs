//! Searches among made-up files.

use super::*;
use crate::image::{Image, Layout};
use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use towebp_encoder::Cancel;

const FACTS: Facts = Facts {
    pixels: 100_000,
    activity: None,
    is_lossless: false,
};

/// A picture whose bytes and scores follow formulas.
struct Made {
    /// Bytes at quality 0, and what each quality adds in percent.
    bytes: f64,
    growth: f64,
    /// The score at quality 0, and the most that is reached.
    worst: f64,
    best: f64,
    /// The bytes of the lossless file, if the mode allows one.
    lossless: Option<usize>,
    /// The qualities that were tried.
    tried: RefCell<Vec<u8>>,
}

impl Made {
    fn bytes_at(&self, quality: u8) -> usize {
        (self.bytes * (1.0 + self.growth / 100.0).powi(quality.into())) as usize
    }

    fn score_at(&self, quality: u8) -> f64 {
        let share = f64::from(quality) / 100.0;
        // Fine steps, of which some go down.
        let ripple = f64::from(quality % 3) * 0.1;
        self.worst + (self.best - self.worst) * share.sqrt() - ripple
    }

    fn lossy(&self, goal: Goal) -> Result<Found, ConversionError> {
        self.tried.borrow_mut().clear();
        search(goal, FACTS, &mut &*self)
    }
}

/// A file of so many bytes.
fn encoded(bytes: usize, coding: Coding) -> Encoded {
    let pixel = towebp_encoder::Picture::new(1, 1, towebp_encoder::ColorType::L8, &[7]);
    let encoder = towebp_encoder::Encoder::lossy(80);
    let mut encoded = encoder.encode(&pixel.expect("a pixel")).expect("a file");
    encoded.file = vec![0; bytes];
    encoded.coding = coding;
    encoded
}

impl Candidates for &Made {
    fn encode_at(&mut self, quality: u8) -> Result<Encoded, ConversionError> {
        self.tried.borrow_mut().push(quality);
        Ok(encoded(self.bytes_at(quality), Coding::Lossy))
    }

    fn lossless(&mut self) -> Option<Result<Encoded, ConversionError>> {
        Some(Ok(encoded(self.lossless?, Coding::Lossless)))
    }

    fn score(&mut self, encoded: &Encoded) -> Result<f64, ConversionError> {
        if encoded.coding == Coding::Lossless {
            return Ok(100.0);
        }
        let quality = *self.tried.borrow().last().expect("one was encoded");
        Ok(self.score_at(quality))
    }
}

/// Pictures of all kinds, many of which no model expects.
fn pictures() -> impl Iterator<Item = Made> {
    let bytes = [90.0, 700.0, 3000.0, 20_000.0];
    let growths = [0.2, 1.5, 4.0, 9.0];
    let scores = [(-60.0, 88.0), (10.0, 90.0), (55.0, 97.0)];
    bytes.into_iter().flat_map(move |bytes| {
        growths.into_iter().flat_map(move |growth| {
            scores.into_iter().map(move |(worst, best)| Made {
                bytes,
                growth,
                worst,
                best,
                lossless: None,
                tried: RefCell::default(),
            })
        })
    })
}

#[test]
fn files_fit_whatever_the_picture_is_like() {
    for picture in pictures() {
        for share in [0.5, 1.0, 1.01, 1.3, 3.0, 20.0, 1e6] {
            let most = (picture.bytes_at(0) as f64 * share) as u64;
            let goal = |is_best_effort| Goal::MaxBytes {
                bytes: most,
                is_best_effort,
            };
            let least = picture.bytes_at(0) as u64;
            let outcome = picture.lossy(goal(false));
            assert!(picture.tried.borrow().len() <= MOST_ENCODINGS);
            if least > most {
                let expected = ConversionError::MaxBytes {
                    allowed: most,
                    least,
                };
                assert_eq!(outcome.err(), Some(expected));
                let found = picture.lossy(goal(true)).expect("the smallest file");
                assert_eq!(
                    (found.quality, found.encoded.file.len()),
                    (Some(0), least as usize)
                );
                continue;
            }
            let found = outcome.expect("one fits");
            assert!(found.encoded.file.len() as u64 <= most);
            let quality = found.quality.expect("it is lossy");
            assert_eq!(found.encoded.file.len(), picture.bytes_at(quality));
        }
    }
}

#[test]
fn scores_are_reached_wherever_a_quality_does() {
    let mut above = Vec::new();
    for mut picture in pictures() {
        for least in [30, 50, 70, 85, 95] {
            let reaches = |quality: u8| picture.score_at(quality) >= f64::from(least);
            let reached = (0..=100).any(reaches);
            let found = picture.lossy(Goal::Score(least)).expect("a file");
            assert!(picture.tried.borrow().len() <= MOST_ENCODINGS);
            let score = found.score.expect("it was requested");
            let quality = found.quality.expect("it is lossy");
            assert!((score - picture.score_at(quality)).abs() < 1e-9);
            if reached {
                assert!(score >= f64::from(least), "{score} for {least}");
                above.push(score - f64::from(least));
                continue;
            }
            assert_eq!(quality, 100, "the best that there is");
            picture.lossless = Some(1 << 20);
            let found = picture.lossy(Goal::Score(least)).expect("a file");
            assert_eq!((found.quality, found.score), (None, Some(100.0)));
            picture.lossless = None;
        }
    }
    let mean = above.iter().sum::<f64>() / above.len() as f64;
    assert!(mean < 4.0, "{mean} points above on average");
}

/// A picture whose curves are as the model expects them, but for so many octaves of its bits, and
/// eight times as many points of its scores.
struct Shifted {
    octaves: f64,
    tried: Vec<u8>,
}

impl Shifted {
    fn value(&self, curve: Curve, quality: u8) -> f64 {
        let expected = Model::new(None).curve(curve)[usize::from(quality)];
        match curve {
            Curve::Bits => expected + self.octaves,
            Curve::Score => expected + 8.0 * self.octaves,
        }
    }

    fn bytes_at(&self, quality: u8) -> usize {
        (self.value(Curve::Bits, quality).exp2() * FACTS.pixels as f64 / 8.0) as usize
    }
}

impl Candidates for Shifted {
    fn encode_at(&mut self, quality: u8) -> Result<Encoded, ConversionError> {
        self.tried.push(quality);
        Ok(encoded(self.bytes_at(quality), Coding::Lossy))
    }

    fn lossless(&mut self) -> Option<Result<Encoded, ConversionError>> {
        None
    }

    fn score(&mut self, _: &Encoded) -> Result<f64, ConversionError> {
        let quality = *self.tried.last().expect("one was encoded");
        Ok(self.value(Curve::Score, quality))
    }
}

#[test]
fn pictures_as_expected_take_one_encoding_and_others_few_more() {
    // The encodings of 80 searches, for bytes and for a score.
    for (octaves, most) in [
        (-1.0, [220, 295]),
        (-0.4, [160, 162]),
        (0.0, [80, 80]),
        (0.4, [160, 169]),
        (1.0, [276, 244]),
    ] {
        let mut taken = [0, 0];
        for quality in 15..95 {
            let mut picture = Shifted {
                octaves,
                tried: Vec::new(),
            };
            let goal = Goal::MaxBytes {
                bytes: picture.bytes_at(quality) as u64,
                is_best_effort: false,
            };
            let found = search(goal, FACTS, &mut picture).expect("it fits");
            taken[0] += u32::from(found.encodings);
            let below = found.quality.map(|found| quality - found);
            assert!(below <= Some(2), "{below:?} below {quality}");

            let least = picture.value(Curve::Score, quality).max(30.0) as u8;
            let found = search(Goal::Score(least), FACTS, &mut picture).expect("it is reached");
            taken[1] += u32::from(found.encodings);
            let above = found.score.map(|score| score - f64::from(least));
            assert!(above <= Some(1.5), "{above:?} above {least}");
        }
        assert!(
            taken.iter().zip(most).all(|(taken, most)| *taken <= most),
            "{taken:?} encodings of pictures that are {octaves} octaves apart"
        );
    }
}

/// A picture that is lossless wherever lossy coding takes more bytes.
struct Smaller<'a>(&'a Made, usize);

impl Candidates for Smaller<'_> {
    fn encode_at(&mut self, quality: u8) -> Result<Encoded, ConversionError> {
        let lossy = self.0.bytes_at(quality);
        let mut made = self.0;
        let file = made.encode_at(quality)?;
        Ok(if lossy < self.1 {
            file
        } else {
            encoded(self.1, Coding::Lossless)
        })
    }

    fn lossless(&mut self) -> Option<Result<Encoded, ConversionError>> {
        Some(Ok(encoded(self.1, Coding::Lossless)))
    }

    fn score(&mut self, encoded: &Encoded) -> Result<f64, ConversionError> {
        let mut made = self.0;
        made.score(encoded)
    }
}

#[test]
fn lossless_files_compete() {
    for picture in pictures() {
        for lossless in [50, picture.bytes_at(30), picture.bytes_at(90)] {
            let goal = Goal::MaxBytes {
                bytes: lossless as u64,
                is_best_effort: false,
            };
            picture.tried.borrow_mut().clear();
            let found = search(goal, FACTS, &mut Smaller(&picture, lossless)).expect("it fits");
            assert!(found.encoded.file.len() <= lossless);
            picture.tried.borrow_mut().clear();
            let found = search(Goal::Score(60), FACTS, &mut Smaller(&picture, lossless));
            let found = found.expect("a file");
            assert!(found.encoded.file.len() <= lossless && found.score >= Some(60.0));
            assert_eq!(
                found.quality.is_none(),
                found.encoded.coding == Coding::Lossless
            );
        }
    }
    let lossless = Facts {
        is_lossless: true,
        ..FACTS
    };
    let picture = pictures().next().expect("there are some");
    let found = search(Goal::Score(80), lossless, &mut Smaller(&picture, 10)).expect("a file");
    assert_eq!(
        (found.encodings, found.quality, found.score),
        (1, None, Some(100.0))
    );
}

/// Small pictures are compared as a whole, in scales, and large ones in strips of 256 rows.
#[test]
fn a_comparison_ends_once_it_is_cancelled() {
    for (width, height, least) in [(160, 130, 2), (2000, 2050, 8)] {
        let image = Image {
            width,
            height,
            layout: Layout::Rgb,
            pixels: vec![90; (width * height * 3) as usize],
        };
        let compare_until = |allowed: usize| {
            let checks = AtomicUsize::new(0);
            let is_unwanted = || checks.fetch_add(1, Ordering::Relaxed) >= allowed;
            let outcome = compare(&image, &image, &Cancel::when(&is_unwanted));
            (outcome, checks.into_inner())
        };
        let (outcome, all) = compare_until(usize::MAX);
        assert!(outcome.is_ok_and(|score| score > 99.0));
        assert!(all >= least, "{width} x {height}: {all} checks");
        for allowed in [0, 1, all / 2, all - 1] {
            let (outcome, checks) = compare_until(allowed);
            assert_eq!(
                outcome,
                Err(ConversionError::Cancelled),
                "{allowed} of {all}"
            );
            assert_eq!(checks, allowed + 1, "called again");
        }
    }
}
