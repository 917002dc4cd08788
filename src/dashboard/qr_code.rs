//! QR codes as pictures in a page.

use maud::{Markup, html};
use qrcodegen::{QrCode, QrCodeEcc};
use std::fmt::Write;

/// The light margin on each side that readers need, in modules.
const MARGIN: i32 = 4;

/// The QR code of a text of at most 2,331 bytes. `name` is for people who do not see it.
pub fn qr_code(text: &str, name: &str) -> Markup {
    let code = QrCode::encode_text(text, QrCodeEcc::Medium).expect("the text is not that long");
    let size = code.size() + 2 * MARGIN;
    let mut path = String::new();
    for y in 0..code.size() {
        for x in (0..code.size()).filter(|x| code.get_module(*x, y)) {
            let (x, y) = (x + MARGIN, y + MARGIN);
            write!(path, "M{x} {y}h1v1h-1z").expect("writing to a String cannot fail");
        }
    }
    // Readers want dark on light, whatever the theme.
    html! {
        svg.qr viewBox={ "0 0 " (size) " " (size) } role="img" aria-label=(name) shape-rendering="crispEdges" {
            rect width=(size) height=(size) fill="#fff" {}
            path d=(path) fill="#000" {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_address_has_a_code_and_its_corner_is_a_finder() {
        let text = qr_code(&"%40".repeat(254), "Key").into_string();
        for module in ["M4 4h", "M10 4h", "M4 10h"] {
            assert!(text.contains(module), "{module}");
        }
        assert!(!text.contains("M5 5h") && !text.contains("M3 "));
    }
}
