//! The constants of the lossy decisions, which were found together by measuring (`benches/peers
//! --search`): each depends on most others. RFC 6386 leaves all of them to the encoder.

/// Defines [`Constants`] and the table of its fields from the same lines.
macro_rules! constants {
    ($($(#[$doc:meta])* $name:ident: $default:literal in $low:literal..=$high:literal,)*) => {
        /// The constants of the lossy decisions.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct Constants {
            $($(#[$doc])* pub $name: i32,)*
        }

        impl Constants {
            /// The values that measured best at effort `medium`.
            pub const DEFAULT: Constants = Constants { $($name: $default,)* };

            /// Name, least and greatest value of each.
            #[cfg(feature = "testing")]
            pub const TABLE: &[(&str, i32, i32)] = &[$((stringify!($name), $low, $high),)*];

            /// Sets the constant called `name`, limited to its range. Returns whether there is
            /// one.
            #[cfg(feature = "testing")]
            pub fn set(&mut self, name: &str, value: i32) -> bool {
                match name {
                    $(stringify!($name) => self.$name = value.clamp($low, $high),)*
                    _ => return false,
                }
                true
            }

            /// Returns the constant called `name`.
            #[cfg(feature = "testing")]
            pub fn get(&self, name: &str) -> Option<i32> {
                match name {
                    $(stringify!($name) => Some(self.$name),)*
                    _ => None,
                }
            }
        }
    };
}

constants! {
    /// `lambda_rd` of luma in squared steps, times 4096, at quantizer index 36.
    lambda_rd: 44 in 16..=90,
    /// How fast it grows with the quantizer index: octaves over 64 indices, times 256.
    lambda_rd_by_index: -36 in -256..=256,
    /// How fast it grows with the activity of a macroblock within its segment: octaves over 1024,
    /// times 256.
    lambda_rd_in_segment: 320 in -512..=512,
    /// `lambda_satd` in steps, times 256.
    lambda_satd: 177 in 50..=350,
    /// Difference of luma's DC index from the segment's, in 1/64 of the frame's index.
    luma_dc_finer: 20 in -16..=48,
    /// Difference of Y2's DC index from the segment's, in 1/64 of the frame's index.
    y2_dc_finer: 3 in -16..=48,
    /// Difference of Y2's AC index from the segment's, in 1/64 of the frame's index.
    y2_ac_finer: 6 in -16..=48,
    /// Difference of chroma's DC index from the segment's, in 1/64 of the frame's index.
    chroma_dc_finer: 21 in -16..=48,
    /// The step of a segment grows with the variance to the power of this, in hundredths.
    step_growth: 23 in 0..=40,
    /// Added to the variance of an 8x8 block before its logarithm is taken.
    activity_floor: 27 in 1..=64,
    /// Chroma's `lambda_rd` in 1/256 of luma's.
    chroma_lambda: 130 in 16..=600,
    /// Y2's `lambda_rd` in its trellis, in 1/256 of luma's. A unit of Y2's coefficients is half a
    /// unit of luma's, so that 1024 weighs errors and bits as luma does.
    y2_lambda: 700 in 0..=1024,
    /// Luma's errors at frequency `r` weigh `1 / (1 + slope r^exponent)`; slope times 1000.
    luma_weight_slope: 610 in 0..=2000,
    /// The exponent, times 100.
    luma_weight_exponent: 129 in 20..=300,
    /// The slope for chroma.
    chroma_weight_slope: 363 in 0..=2000,
    /// The exponent for chroma, times 100.
    chroma_weight_exponent: 246 in 20..=300,
    /// By how much less errors count that make a coefficient larger, in 1/256.
    overshoot_discount: 70 in 0..=256,
    /// Rounding of luma's DC where there is no trellis, in 1/256 of a step.
    luma_dc_rounding: 112 in 32..=128,
    /// Rounding of the lowest of luma's AC where there is no trellis, in 1/256 of a step.
    luma_ac_rounding: 108 in 32..=128,
    /// How much less it is for each further row or column of frequencies.
    luma_rounding_falls: 0 in -16..=32,
    /// By how much the dead zone of the last coefficient of a block of luma exceeds half a step
    /// where there is no trellis, in 1/256 of a step.
    last_dead_zone: 22 in 0..=128,
    /// The dead zone of a last coefficient grows by this for each zero before it.
    last_dead_zone_grows: 12 in 0..=64,
    /// Rounding of chroma's DC, in 1/256 of a step.
    chroma_dc_rounding: 112 in 32..=128,
    /// Rounding of chroma's AC, in 1/256 of a step.
    chroma_ac_rounding: 108 in 32..=128,
    /// Rounding of Y2's DC in 1/256 of a step.
    y2_dc_rounding: 112 in 64..=128,
    /// Rounding of Y2's AC in 1/256 of a step.
    y2_ac_rounding: 117 in 64..=128,
    /// Within a macroblock, errors of luma weigh as the local variance to the power of minus this,
    /// in 1/256.
    masking: 72 in 0..=256,
    /// Added to the local variance.
    masking_floor: 50 in 1..=128,
    /// The largest logarithm of the local variance that counts, times 256: what is busier, such as
    /// text, masks no more.
    masking_ceiling: 2560 in 2000..=4000,
    /// Filter level in 1/256 of the step of luma's AC.
    filter_strength: 60 in 0..=300,
    /// Largest step that needs no filter, in 1/256 of a level.
    filter_invisible: 150 in 0..=2000,
    /// Between passes, errors of a 4x4 block of luma weigh as the structure that it lost to the
    /// power of this, in eighths.
    lost_structure: 2 in 0..=8,
}

impl Constants {
    /// The constants of effort `low`, which has no trellis: dead zones decide what is sent, and do
    /// best if they are wider for the highest frequencies.
    pub const LOW: Constants = Constants {
        luma_dc_finer: 32,
        y2_dc_finer: 0,
        y2_ac_finer: 3,
        chroma_dc_finer: 25,
        lambda_rd_in_segment: 240,
        step_growth: 22,
        lambda_satd: 138,
        luma_dc_rounding: 120,
        luma_ac_rounding: 114,
        luma_rounding_falls: 13,
        chroma_dc_rounding: 122,
        chroma_ac_rounding: 113,
        y2_ac_rounding: 120,
        masking: 80,
        filter_strength: 62,
        ..Constants::DEFAULT
    };

    /// Constants of `high`, whose passes feed back where errors show: steps may grow faster with
    /// the activity.
    pub const HIGH: Constants = Constants {
        lambda_rd_in_segment: 256,
        luma_dc_finer: 18,
        chroma_dc_finer: 22,
        step_growth: 25,
        chroma_lambda: 170,
        luma_weight_slope: 600,
        overshoot_discount: 57,
        masking: 66,
        filter_strength: 57,
        ..Constants::DEFAULT
    };

    /// The constants of `max`, whose passes weigh blocks by more of what they lost.
    pub const MAX: Constants = Constants {
        luma_dc_finer: 22,
        luma_weight_slope: 680,
        masking: 48,
        lost_structure: 3,
        ..Constants::HIGH
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_of_all_efforts_lie_within_their_ranges() {
        let efforts = [
            ("low", Constants::LOW),
            ("medium", Constants::DEFAULT),
            ("high", Constants::HIGH),
            ("max", Constants::MAX),
        ];
        for (effort, measured) in efforts {
            for &(name, low, high) in Constants::TABLE {
                let value = measured.get(name).expect("it is in the table");
                assert!((low..=high).contains(&value), "{effort}: {name} is {value}");
                let mut constants = measured;
                assert!(constants.set(name, low), "{name} can be set");
                assert!(constants.set(name, value), "{name} can be set");
                assert_eq!(constants, measured, "{name} is set alone");
            }
        }
        assert!(!{ Constants::DEFAULT }.set("lambda", 1), "no such constant");
    }
}
