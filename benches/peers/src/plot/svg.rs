//! A picture of lines, dots and text, as the text of an SVG file.

use std::fmt::Write as _;

/// Height of the letters in pixels; their widths are guessed from it.
pub const FONT: f64 = 13.0;
/// Text and axes.
pub const INK: &str = "#1f2328";
/// What stands back.
pub const PALE: &str = "#59636e";
const GRID: &str = "#e4e7eb";

/// How a line is drawn.
#[derive(Clone, Copy)]
pub struct Stroke {
    /// As CSS has it.
    pub color: &'static str,
    /// In pixels.
    pub width: f64,
    /// Whether it has gaps.
    pub dashed: bool,
}

/// Where a text hangs on its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// It begins there.
    Start,
    /// Its middle is there.
    Middle,
    /// It ends there.
    End,
}

/// An SVG file in the making. Pixels run right and down.
pub struct Svg {
    text: String,
}

impl Svg {
    /// Its own white ground and frame, to be legible on pages of any color.
    pub fn new(width: f64, height: f64, title: &str) -> Self {
        let text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
             font-family=\"system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif\" font-size=\"{FONT}\">\n\
             <title>{}</title>\n\
             <rect x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"6\" fill=\"#ffffff\" stroke=\"#d1d9e0\"/>\n",
            escaped(title),
            width - 1.0,
            height - 1.0,
        );
        Self { text }
    }

    /// The whole file.
    pub fn finish(mut self) -> String {
        self.text.push_str("</svg>\n");
        self.text
    }

    /// A line through points.
    pub fn line(&mut self, points: &[(f64, f64)], stroke: Stroke) {
        let points: Vec<String> = points
            .iter()
            .map(|(x, y)| format!("{x:.1},{y:.1}"))
            .collect();
        let dashes = if stroke.dashed {
            " stroke-dasharray=\"6 4\""
        } else {
            ""
        };
        writeln!(
            self.text,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" stroke-linejoin=\"round\"{dashes}/>",
            points.join(" "),
            stroke.color,
            stroke.width,
        )
        .expect(STRING);
    }

    /// A thin line that leads the eye.
    pub fn rule(&mut self, from: (f64, f64), to: (f64, f64), strong: bool) {
        let stroke = Stroke {
            color: if strong { PALE } else { GRID },
            width: 1.0,
            dashed: false,
        };
        self.line(&[from, to], stroke);
    }

    /// A dot with a white rim, so that it stands out of its line.
    pub fn dot(&mut self, (x, y): (f64, f64), radius: f64, color: &str) {
        writeln!(
            self.text,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" fill=\"{color}\" stroke=\"#ffffff\"/>"
        )
        .expect(STRING);
    }

    /// Text with its middle line at the point.
    pub fn text(&mut self, (x, y): (f64, f64), anchor: Anchor, color: &str, text: &str) {
        self.styled(x, y, anchor, color, "", text);
    }

    /// Text that weighs more.
    pub fn bold(&mut self, (x, y): (f64, f64), anchor: Anchor, color: &str, text: &str) {
        self.styled(x, y, anchor, color, " font-weight=\"600\"", text);
    }

    /// Text that says under which conditions.
    pub fn small(&mut self, (x, y): (f64, f64), anchor: Anchor, text: &str) {
        self.styled(x, y, anchor, PALE, " font-size=\"11\"", text);
    }

    fn styled(&mut self, x: f64, y: f64, anchor: Anchor, color: &str, style: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        // A white rim keeps the letters apart from lines behind them.
        writeln!(
            self.text,
            "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\" fill=\"{color}\"{style} \
             stroke=\"#ffffff\" stroke-width=\"3\" paint-order=\"stroke\">{}</text>",
            y + FONT * 0.35,
            escaped(text),
        )
        .expect(STRING);
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

const STRING: &str = "writing to a String does not fail";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_close_its_element() {
        let mut svg = Svg::new(10.0, 10.0, "a < b");
        svg.text((1.0, 1.0), Anchor::Start, INK, "</text>&");
        let text = svg.finish();
        assert!(text.contains("<title>a &lt; b</title>"), "{text}");
        assert!(text.contains(">&lt;/text&gt;&amp;</text>"), "{text}");
    }
}
