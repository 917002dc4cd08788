//! Figures of encoders that cannot be run here, as their authors publish them.

use super::svg::Stroke;

/// A curve of CPU time and savings.
pub struct Published {
    /// What the label says.
    pub name: &'static str,
    /// CPU time beside libwebp m4's, and bytes at equal SSIMULACRA2 beside m4's in percent.
    pub points: &'static [(f64, f64)],
    /// How it is drawn.
    pub stroke: Stroke,
}

/// A closed encoder. Read from its authors' plot of SSIMULACRA2 over CPU time on the 24 Kodak
/// pictures; libwebp's own methods on that plot (m0 +19.9, m2 +3.1, m6 -5.6 %) are where they are
/// here (+20.8, +2.7, -5.1 %).
pub const IRIS_WEBP: Published = Published {
    name: "Iris-WebP, as published (Kodak)",
    points: &[
        (0.28, 6.3),
        (0.34, -6.2),
        (0.58, -17.8),
        (0.70, -20.3),
        (0.80, -21.1),
        (1.07, -21.9),
        (1.55, -22.2),
    ],
    stroke: Stroke {
        color: "#0f766e",
        width: 1.75,
        dashed: true,
    },
};
