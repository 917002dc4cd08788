//! The colors of text watermarks, as the specification writes them.

/// An sRGB color.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Color {
    /// Red.
    pub red: u8,
    /// Green.
    pub green: u8,
    /// Blue.
    pub blue: u8,
}

impl Color {
    /// `white`
    pub const WHITE: Color = Color::new(255, 255, 255);

    /// The values that [`Color::parse`] accepts, for error texts.
    pub const ALLOWED: &str = "white, black, red, blue, yellow, gray, #RRGGBB or #RGB";

    /// The color of these samples.
    pub const fn new(red: u8, green: u8, blue: u8) -> Color {
        Color { red, green, blue }
    }

    /// Reads one of the six names, `#RRGGBB` or `#RGB` (each digit stands for two), in any case of
    /// letters. The `#` may be left out, since it has to be percent-encoded in a URL.
    pub fn parse(text: &str) -> Option<Color> {
        match text.to_ascii_lowercase().as_str() {
            "white" => Some(Color::WHITE),
            "black" => Some(Color::new(0, 0, 0)),
            "red" => Some(Color::new(255, 0, 0)),
            "blue" => Some(Color::new(0, 0, 255)),
            "yellow" => Some(Color::new(255, 255, 0)),
            "gray" => Some(Color::new(128, 128, 128)), // as in CSS
            other => parse_hex(other.strip_prefix('#').unwrap_or(other)),
        }
    }

    /// Black or white, whichever differs more: the higher of the two ratios that WCAG 2 calls
    /// contrast, whose middle is a luminance of 0.179. Samples are taken to have a gamma of 2.
    pub(super) fn contrast(self) -> Color {
        let square = |sample: u8| u64::from(sample).pow(2);
        let luminance =
            2126 * square(self.red) + 7152 * square(self.green) + 722 * square(self.blue);
        if luminance > 1790 * square(255) {
            Color::new(0, 0, 0)
        } else {
            Color::WHITE
        }
    }
}

fn parse_hex(digits: &str) -> Option<Color> {
    // from_str_radix alone would take a sign.
    if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let number = u32::from_str_radix(digits, 16).ok()?;
    let byte = |shift: u32| (number >> shift) as u8;
    let digit = |shift: u32| (byte(shift) & 15) * 17;
    match digits.len() {
        6 => Some(Color::new(byte(16), byte(8), byte(0))),
        3 => Some(Color::new(digit(8), digit(4), digit(0))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_six_names_and_hexadecimal_are_read_in_any_case() {
        for (text, color) in [
            ("white", Color::new(255, 255, 255)),
            ("Black", Color::new(0, 0, 0)),
            ("RED", Color::new(255, 0, 0)),
            ("blue", Color::new(0, 0, 255)),
            ("yellow", Color::new(255, 255, 0)),
            ("gray", Color::new(128, 128, 128)),
            ("#12aBfF", Color::new(0x12, 0xab, 0xff)),
            ("#000000", Color::new(0, 0, 0)),
            ("ffcc00", Color::new(0xff, 0xcc, 0)),
            ("FFCC01", Color::new(0xff, 0xcc, 1)),
            ("#fff", Color::WHITE),
            ("#1aF", Color::new(0x11, 0xaa, 0xff)),
            ("0c8", Color::new(0, 0xcc, 0x88)),
        ] {
            assert_eq!(Color::parse(text), Some(color), "{text}");
        }
    }

    #[test]
    fn contrast_is_black_on_light_colors_and_white_on_dark_ones() {
        for (name, is_light) in [
            ("white", true),
            ("yellow", true),
            ("gray", true),
            ("red", true), // 5.3 to 1 against black, 4 to 1 against white
            ("blue", false),
            ("black", false),
            ("#6a6a6a", false),
            ("#00a000", true),
        ] {
            let expected = if is_light {
                Color::new(0, 0, 0)
            } else {
                Color::WHITE
            };
            let color = Color::parse(name).expect("a color");
            assert_eq!(color.contrast(), expected, "{name}");
        }
    }

    #[test]
    fn anything_else_is_rejected() {
        for text in [
            "",
            "green",
            "grey",
            "#",
            "ff",
            "#ff",
            "#ffff",
            "#12345",
            "#1234567",
            "#ffffff80",
            "##fff",
            "#ggg",
            "#+12345",
            "+ff",
            "#12 345",
            " white",
            "0x123",
            "#ééé",
        ] {
            assert_eq!(Color::parse(text), None, "{text:?}");
        }
    }
}
