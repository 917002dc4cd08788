//! The names and values of a query or a form: `application/x-www-form-urlencoded` (section 5.1 of
//! the URL standard).

use percent_encoding::percent_decode;

/// Names and values of a query or a form, decoded, in order.
#[derive(Default)]
pub struct Pairs {
    /// Bytes that are not UTF-8 stand as U+FFFD: callers use [`Pairs::check`] before the values.
    pairs: Vec<(String, String)>,
    /// The name of the first pair whose name or value is not UTF-8.
    undecodable: Option<String>,
}

/// This parameter was given more than once.
#[derive(Debug, PartialEq, Eq)]
pub struct Repeated(pub &'static str);

/// The name or the value of this parameter, or field of a form, is not UTF-8 once it is decoded.
#[derive(Debug, PartialEq, Eq)]
pub struct NotUtf8(pub String);

impl Pairs {
    /// Decodes a query, without its `?`, or the body of a form.
    pub fn decode(text: &[u8]) -> Pairs {
        let mut undecodable = None;
        let pairs = raw_pairs(text).map(|(name, value)| {
            let ((name, name_is_text), (value, value_is_text)) = (decode(name), decode(value));
            if !(name_is_text && value_is_text) {
                undecodable.get_or_insert_with(|| name.clone());
            }
            (name, value)
        });
        Pairs {
            pairs: pairs.collect(),
            undecodable,
        }
    }

    /// Adds a name and a value at the end.
    pub fn push(&mut self, name: String, value: String) {
        self.pairs.push((name, value));
    }

    /// Adds all names and values of others at the end.
    pub fn append(&mut self, others: &Pairs) {
        self.pairs.extend_from_slice(&others.pairs);
        if self.undecodable.is_none() {
            self.undecodable.clone_from(&others.undecodable);
        }
    }

    /// Checks that all names and values are UTF-8.
    ///
    /// # Errors
    /// [`NotUtf8`], naming the first pair that is not.
    pub fn check(&self) -> Result<(), NotUtf8> {
        self.undecodable
            .clone()
            .map_or(Ok(()), |name| Err(NotUtf8(name)))
    }

    /// Names and values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// All values of this name, in order.
    pub fn values(&self, name: &str) -> impl Iterator<Item = &str> {
        self.iter()
            .filter(move |(given, _)| *given == name)
            .map(|(_, value)| value)
    }

    /// The one value of this parameter; `None` if it is not given.
    ///
    /// # Errors
    /// [`Repeated`], if it is given more than once.
    pub fn parameter(&self, name: &'static str) -> Result<Option<&str>, Repeated> {
        let mut values = self.values(name);
        let first = values.next();
        if values.next().is_some() {
            Err(Repeated(name))
        } else {
            Ok(first)
        }
    }

    /// Bytes of memory that names and values hold.
    pub fn held(&self) -> usize {
        let texts = self.iter().map(|(name, value)| name.len() + value.len());
        self.pairs.capacity() * size_of::<(String, String)>() + texts.sum::<usize>()
    }

    /// The names and values themselves.
    pub fn into_inner(self) -> Vec<(String, String)> {
        self.pairs
    }
}

/// The decoded names alone, each decoded on demand.
pub fn names(text: &[u8]) -> impl Iterator<Item = String> {
    raw_pairs(text).map(|(name, _)| decode(name).0)
}

/// Names and values as they were sent. A pair without `=` has an empty value.
fn raw_pairs(text: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    text.split(|&byte| byte == b'&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| match pair.iter().position(|&byte| byte == b'=') {
            Some(end) => (&pair[..end], &pair[end + 1..]),
            None => (pair, &[][..]),
        })
}

/// One decoded name or value, and whether it is UTF-8.
fn decode(text: &[u8]) -> (String, bool) {
    let spaced: Vec<u8> = text
        .iter()
        .map(|&byte| if byte == b'+' { b' ' } else { byte })
        .collect();
    let bytes: Vec<u8> = percent_decode(&spaced).collect();
    match String::from_utf8(bytes) {
        Ok(text) => (text, true),
        Err(error) => (
            String::from_utf8_lossy(error.as_bytes()).into_owned(),
            false,
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use towebp_encoder::testing::Random;

    #[test]
    fn a_query_is_decoded_once_and_keeps_repetitions() {
        let pairs =
            Pairs::decode(b"watermark=a+b%20c%2Bd%26&x=1&x=2&watermark_color=%23FF0000&flag");
        assert_eq!(pairs.parameter("watermark"), Ok(Some("a b c+d&")));
        assert_eq!(pairs.parameter("watermark_color"), Ok(Some("#FF0000")));
        assert_eq!(pairs.parameter("flag"), Ok(Some("")));
        assert_eq!(pairs.parameter("x"), Err(Repeated("x")));
        assert_eq!(pairs.parameter("absent"), Ok(None));
    }

    #[test]
    fn what_is_not_utf_8_is_found_by_name() {
        for (query, name) in [
            ("watermark=%ff%fe", "watermark"),
            ("a=1&watermark=x%C3", "watermark"),
            ("a=%C3%A4&b=%ED%A0%80&c=%ff", "b"),
            ("caf%e9=1", "caf\u{fffd}"),
            ("%ff", "\u{fffd}"),
        ] {
            let expected = Err(NotUtf8(name.to_owned()));
            assert_eq!(Pairs::decode(query.as_bytes()).check(), expected, "{query}");
        }
        let query = b"a=%C3%A4&&b=%F0%9F%98%80%00&c=100%&d=%zz&e=a=b&=f&+g=";
        let valid = Pairs::decode(query);
        assert_eq!(valid.check(), Ok(()));
        let pairs = [
            ("a", "ä"),
            ("b", "\u{1f600}\0"),
            ("c", "100%"),
            ("d", "%zz"),
            ("e", "a=b"),
            ("", "f"),
            (" g", ""),
        ];
        assert_eq!(valid.iter().collect::<Vec<_>>(), pairs);
        assert!(names(query).eq(pairs.map(|(name, _)| name)));
    }

    #[test]
    fn queries_are_decoded_as_browsers_encode_them() {
        let mut random = Random::new(7);
        for _ in 0..2000 {
            let text: String = (0..random.below(30))
                .map(|_| char::from(b"ab=&+%20fF;/?"[random.index(13)]))
                .collect();
            let expected: Vec<_> = form_urlencoded::parse(text.as_bytes())
                .into_owned()
                .collect();
            assert_eq!(
                Pairs::decode(text.as_bytes()).into_inner(),
                expected,
                "{text}"
            );
        }
    }
}
