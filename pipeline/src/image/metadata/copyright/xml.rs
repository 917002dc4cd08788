//! A scanner of XML: tags with their attributes, and text, in the order of the document. It borrows
//! all that it returns, takes linear time, and ends at a document type, since entities that a
//! document defines can be of any size.

/// A part of a document.
#[derive(Clone, Copy)]
pub enum Part<'a> {
    /// A start tag, with the text of its attributes; and whether the element ends with it.
    Start(&'a str, Attributes<'a>, bool),
    /// An end tag.
    End,
    /// Text that is not unescaped yet.
    Text(&'a str),
    /// Text as it stands, from a section `CDATA`.
    Verbatim(&'a str),
}

/// The parts of a document. It ends where the document is no XML.
pub struct Parts<'a>(pub &'a str);

impl<'a> Iterator for Parts<'a> {
    type Item = Part<'a>;

    fn next(&mut self) -> Option<Part<'a>> {
        while !self.0.is_empty() {
            if let Some(behind) = self.0.strip_prefix("<!--") {
                self.0 = behind.split_once("-->")?.1;
            } else if let Some(behind) = self.0.strip_prefix("<?") {
                self.0 = behind.split_once("?>")?.1;
            } else if let Some(behind) = self.0.strip_prefix("<![CDATA[") {
                let (text, rest) = behind.split_once("]]>")?;
                self.0 = rest;
                return Some(Part::Verbatim(text));
            } else if let Some(behind) = self.0.strip_prefix("</") {
                self.0 = behind.split_once('>')?.1;
                return Some(Part::End);
            } else if let Some(tag) = self.0.strip_prefix('<') {
                return self.start_tag(tag);
            } else {
                let end = self.0.find('<').unwrap_or(self.0.len());
                let (text, rest) = self.0.split_at(end);
                self.0 = rest;
                return Some(Part::Text(text));
            }
        }
        None
    }
}

impl<'a> Parts<'a> {
    fn start_tag(&mut self, tag: &'a str) -> Option<Part<'a>> {
        let mut quote = None;
        let end = tag.bytes().position(|byte| match (quote, byte) {
            (None, b'"' | b'\'') => {
                quote = Some(byte);
                false
            }
            (Some(begin), _) if begin == byte => {
                quote = None;
                false
            }
            (quote, byte) => quote.is_none() && byte == b'>',
        })?;
        self.0 = &tag[end + 1..];
        let inside = tag[..end].strip_suffix('/').unwrap_or(&tag[..end]);
        let name_end = inside.find(|letter: char| letter.is_ascii_whitespace());
        let (name, attributes) = inside.split_at(name_end.unwrap_or(inside.len()));
        let is_name = !name.is_empty() && !name.starts_with('!');
        let is_empty = inside.len() < end;
        is_name.then_some(Part::Start(name, Attributes(attributes), is_empty))
    }
}

/// The attributes of a start tag: name, and value that is not unescaped yet.
#[derive(Clone, Copy)]
pub struct Attributes<'a>(&'a str);

impl<'a> Attributes<'a> {
    pub fn pairs(self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let Attributes(mut rest) = self;
        std::iter::from_fn(move || {
            let (name, behind) = rest.split_once('=')?;
            let behind = behind.trim_start();
            let quote = behind.chars().next().filter(|mark| "\"'".contains(*mark))?;
            let (value, behind) = behind[1..].split_once(quote)?;
            rest = behind;
            Some((name.trim(), value))
        })
    }
}

/// Replaces the predefined entities and references to characters; others are left out.
pub fn unescape(mut text: &str, into: &mut String) {
    while let Some((before, behind)) = text.split_once('&') {
        into.push_str(before);
        let Some((name, rest)) = behind.split_once(';') else {
            return;
        };
        into.extend(match name {
            "lt" => Some('<'),
            "gt" => Some('>'),
            "amp" => Some('&'),
            "quot" => Some('"'),
            "apos" => Some('\''),
            _ => name.strip_prefix('#').and_then(|number| {
                let code = match number.strip_prefix('x') {
                    Some(hex) => u32::from_str_radix(hex, 16),
                    None => number.parse(),
                };
                char::from_u32(code.ok()?)
            }),
        });
        text = rest;
    }
    into.push_str(text);
}

/// Whether a document may have this character (XML 1.0, section 2.2).
pub fn is_allowed(letter: char) -> bool {
    !matches!(letter, '\0'..'\t' | '\u{b}' | '\u{c}' | '\u{e}'..' ' | '\u{fffe}' | '\u{ffff}')
}

/// Escapes a text for the content of an element or an attribute.
pub fn escape(text: &str, into: &mut String) {
    for letter in text.chars() {
        match letter {
            '<' => into.push_str("&lt;"),
            '>' => into.push_str("&gt;"),
            '&' => into.push_str("&amp;"),
            '"' => into.push_str("&quot;"),
            _ => into.push(letter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_back_from_their_escapes() {
        let text = "a < b & \"c\" > d 'e' é 😀\n";
        let (mut escaped, mut back) = (String::new(), String::new());
        escape(text, &mut escaped);
        assert!(!escaped.contains(['<', '>', '"']), "{escaped}");
        unescape(&escaped, &mut back);
        assert_eq!(back, text);
        let mut other = String::new();
        unescape("&#65;&#x42;&unknown;&#xd800;C&amp", &mut other);
        assert_eq!(other, "ABC");
    }

    #[test]
    fn a_document_is_read_up_to_its_end_or_its_fault() {
        let read = |document| {
            let parts = Parts(document).map(|part| match part {
                Part::Start(name, attributes, is_empty) => {
                    format!(
                        "{name}{:?}{is_empty}",
                        attributes.pairs().collect::<Vec<_>>()
                    )
                }
                Part::End => "/".to_owned(),
                Part::Text(text) | Part::Verbatim(text) => text.to_owned(),
            });
            parts.collect::<Vec<_>>().join("|")
        };
        assert_eq!(
            read("<?x?><a b='1>' c = \"2\"><!-- <d> -->x<e/><![CDATA[<&]]></a>"),
            r#"a[("b", "1>"), ("c", "2")]false|x|e[]true|<&|/"#
        );
        assert_eq!(read("<a><!DOCTYPE x [<!ENTITY y 'z'>]><b/>"), "a[]false");
        assert_eq!(read("<a b='"), "");
    }
}
