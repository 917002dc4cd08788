//! The parameters of a conversion. Whatever the query holds: values within their ranges, or an
//! error that a person can read.

#![cfg_attr(fuzzing, no_main)]

use libfuzzer_sys::fuzz_target;
use towebp_pipeline::conversion::{Length, Params, TextSize};

fuzz_target!(|query: &[u8]| {
    let pairs: Vec<(String, String)> = form_urlencoded::parse(query).into_owned().collect();
    let parse = || {
        Params::parse(
            pairs
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str())),
        )
    };
    match parse() {
        Ok(params) => {
            assert!(params.quality <= 100 && params.placement.opacity <= 100);
            assert!(
                params
                    .placement
                    .scale
                    .is_none_or(|percent| (1..=100).contains(&percent))
            );
            assert!((-360..=360).contains(&params.placement.rotate));
            if let Some(Length::Share(share)) = params.placement.margin {
                assert!(share <= 25_000);
            }
            if let Some(text) = &params.text {
                let is_allowed = match text.size {
                    TextSize::Auto => true,
                    TextSize::Given(Length::Pixels(pixels)) => (8..=200).contains(&pixels),
                    TextSize::Given(Length::Share(share)) => (100..=100_000).contains(&share),
                };
                assert!(is_allowed && !text.text.is_empty());
            }
            assert_eq!(parse().ok(), Some(params), "not the same twice");
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
