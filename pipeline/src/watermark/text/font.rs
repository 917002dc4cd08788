//! The fonts that text is drawn with, and the order in which they are searched for a character.

use super::path::{Flattened, flatten};
use harfrust::Font;
use std::fmt;
use std::panic::catch_unwind;
use std::sync::LazyLock;

/// Fonts for texts: the added ones in their order, then the bundled ones.
#[derive(Clone, Default)]
pub struct Fonts {
    added: Vec<Font>,
}

/// The reason why a file cannot be used as a font.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FontError {
    /// Its tables cannot be read.
    NotAFont,
    /// It has no table from characters to glyphs.
    WithoutCharacters,
    /// None of its first characters has an outline: its glyphs are bitmaps, or colored pictures.
    WithoutOutlines,
}

/// The index of a font among [`Fonts`].
pub(super) type Face = u16;

/// The bundled fonts. They are compiled in as the build script compressed them, and each is
/// inflated when a text first needs it.
#[cfg(feature = "fonts")]
static BUNDLED: [LazyLock<Font>; 2] = [
    LazyLock::new(|| bundled(COMPRESSED[0])),
    LazyLock::new(|| bundled(COMPRESSED[1])),
];

#[cfg(feature = "fonts")]
const COMPRESSED: [&[u8]; 2] = [
    include_bytes!(concat!(env!("OUT_DIR"), "/DejaVuSans.zlib")),
    include_bytes!(concat!(env!("OUT_DIR"), "/NotoSansDevanagari-Regular.zlib")),
];

/// None is compiled in.
#[cfg(not(feature = "fonts"))]
static BUNDLED: [LazyLock<Font>; 0] = [];

#[cfg(feature = "fonts")]
fn bundled(compressed: &[u8]) -> Font {
    let bytes = fdeflate::decompress_to_vec(compressed).expect("the build script compressed it");
    Font::new(bytes, 0).expect("the bundled fonts are whole")
}

impl Fonts {
    /// The bundled fonts only.
    pub fn bundled() -> &'static Fonts {
        static BUNDLED_ONLY: Fonts = Fonts { added: Vec::new() };
        &BUNDLED_ONLY
    }

    /// The bundled fonts as one file, for a program in a browser: each as zlib compresses it, after
    /// its length in four bytes, the lowest first.
    #[cfg(feature = "fonts")]
    pub fn bundled_file() -> Vec<u8> {
        let with_length = |font: &&[u8]| [&(font.len() as u32).to_le_bytes()[..], font].concat();
        COMPRESSED.iter().flat_map(with_length).collect()
    }

    /// Adds a TrueType or OpenType font, or the first one of a collection. It is searched after
    /// those added before, and before the bundled ones.
    ///
    /// # Errors
    /// [`FontError`]
    pub fn add(&mut self, bytes: Vec<u8>) -> Result<(), FontError> {
        // Read-fonts is made for hostile fonts, but a panic of it must not end the program.
        let font = catch_unwind(|| check(bytes)).unwrap_or(Err(FontError::NotAFont))?;
        self.added.push(font);
        Ok(())
    }

    /// All faces, in the order in which they are searched.
    pub(super) fn faces(&self) -> impl Iterator<Item = Face> {
        0..(self.added.len() + BUNDLED.len()) as Face
    }

    /// The font of one of [`Fonts::faces`].
    pub(super) fn font(&self, face: Face) -> &Font {
        let face = usize::from(face);
        self.added
            .get(face)
            .unwrap_or_else(|| &BUNDLED[face - self.added.len()])
    }
}

/// A tolerance in units of the font: only whether there is an outline matters, not its shape.
const COARSE: f32 = 100.0;

/// The number of characters among which one has to have an outline: more than the signs that every
/// font begins with, some of which are blank.
const CHECKED_CHARACTERS: usize = 256;

fn check(bytes: Vec<u8>) -> Result<Font, FontError> {
    let font = Font::new(bytes, 0)
        .filter(|font| font.num_glyphs() > 0)
        .ok_or(FontError::NotAFont)?;
    let charmap = font.charmap();
    if charmap.unicodes().next().is_none() {
        return Err(FontError::WithoutCharacters);
    }
    let mut outline = Flattened::default();
    let mut glyphs = charmap
        .unicodes()
        .take(CHECKED_CHARACTERS)
        .map(|(_, glyph)| glyph);
    let is_drawn = glyphs.any(|glyph| {
        flatten(&font, glyph, |x, y| (x, y), COARSE, &mut outline);
        !outline.is_empty()
    });
    if is_drawn {
        Ok(font.clone())
    } else {
        Err(FontError::WithoutOutlines)
    }
}

impl fmt::Debug for Fonts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fonts({} added)", self.added.len())
    }
}

impl fmt::Display for FontError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FontError::NotAFont => "is no TrueType or OpenType font that can be read",
            FontError::WithoutCharacters => "has no table of Unicode characters",
            FontError::WithoutOutlines => {
                "has no outlines; fonts of bitmaps and of colored emoji cannot be used"
            }
        })
    }
}

impl std::error::Error for FontError {}

#[cfg(test)]
mod tests {
    use super::*;
    use towebp_encoder::testing::Random;

    const DEVANAGARI: &[u8] = include_bytes!("../../../fonts/NotoSansDevanagari-Regular.ttf");

    #[test]
    fn added_fonts_are_searched_before_the_bundled_ones() {
        let mut fonts = Fonts::default();
        fonts.add(DEVANAGARI.to_vec()).expect("a whole font");
        let glyphs: Vec<u32> = fonts
            .faces()
            .map(|face| fonts.font(face).num_glyphs())
            .collect();
        let bundled: Vec<u32> = BUNDLED.iter().map(|font| font.num_glyphs()).collect();
        assert_eq!(glyphs, [bundled[1], bundled[0], bundled[1]]);
    }

    #[test]
    fn files_that_are_no_usable_font_are_rejected() {
        let mut fonts = Fonts::default();
        for bytes in [
            &b""[..],
            b"not a font",
            b"\0\x01\0\0",
            &DEVANAGARI[..100],
            include_bytes!("../../../testdata/alpha.png"),
        ] {
            assert_eq!(fonts.add(bytes.to_vec()), Err(FontError::NotAFont));
        }
        assert_eq!(
            fonts.add(without(DEVANAGARI, b"cmap")),
            Err(FontError::WithoutCharacters)
        );
        assert_eq!(
            fonts.add(without(DEVANAGARI, b"glyf")),
            Err(FontError::WithoutOutlines)
        );
        assert!(fonts.added.is_empty());
    }

    #[test]
    fn damaged_fonts_are_rejected_or_read_without_harm() {
        let mut random = Random::new(DEVANAGARI.len() as u64);
        for _ in 0..300 {
            let mut bytes = DEVANAGARI.to_vec();
            for _ in 0..20 {
                let at = random.index(bytes.len());
                bytes[at] = random.byte();
            }
            let mut fonts = Fonts::default();
            fonts.add(bytes).ok();
        }
    }

    /// The font with one table renamed, so that it is missing.
    fn without(font: &[u8], table: &[u8; 4]) -> Vec<u8> {
        let mut bytes = font.to_vec();
        let at = bytes
            .windows(4)
            .position(|window| window == table)
            .expect("the table is there");
        bytes[at..at + 4].copy_from_slice(b"zzzz");
        bytes
    }
}
