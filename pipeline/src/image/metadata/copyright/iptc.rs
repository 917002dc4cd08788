//! Names and rights in the IPTC data of a JPEG: records of IPTC IIM 4.2 in an image resource of
//! Photoshop.

/// The name that the data of the segment APP13 begins with.
pub const NAME: &[u8] = b"Photoshop 3.0\0";

/// A data set of record 2, by its number, with its text.
pub type DataSet = (u8, String);

/// The first data sets of these `numbers` in the image resources of a segment.
pub fn read(resources: &[u8], numbers: &[u8]) -> Vec<DataSet> {
    /// Most data sets, and most bytes of one; the standard has at most 128 bytes for each.
    const MOST: usize = 16;
    const MOST_BYTES: usize = 2 << 10;
    let records = Resources(resources).find(|(number, _)| *number == 0x0404);
    let records = records.map_or(&[][..], |(_, data)| data);
    // ESC % G designates UTF-8 (data set 1:90). Much IPTC is UTF-8 without it.
    let is_utf8 = Records(records).any(|record| record == (1, 90, b"\x1b%G"));
    let wanted = Records(records).filter(|(record, number, data)| {
        *record == 2 && numbers.contains(number) && data.len() <= MOST_BYTES
    });
    let texts = wanted.map(|(_, number, data)| (number, text(data, is_utf8)));
    texts.take(MOST).collect()
}

fn text(data: &[u8], is_utf8: bool) -> String {
    match str::from_utf8(data) {
        Ok(text) => text.to_owned(),
        Err(_) if is_utf8 => String::from_utf8_lossy(data).into_owned(),
        Err(_) => data.iter().map(|&byte| char::from(byte)).collect(),
    }
}

/// Image resources: `8BIM`, a number, a name of even length with its length in front, and data of
/// even length with its length in front.
struct Resources<'a>(&'a [u8]);

impl<'a> Iterator for Resources<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<(u16, &'a [u8])> {
        let behind = self.0.strip_prefix(b"8BIM")?;
        let (number, behind) = behind.split_first_chunk()?;
        let name = usize::from(*behind.first()?) + 1;
        let behind = behind.get(name + name % 2..)?;
        let (length, behind) = behind.split_first_chunk()?;
        let length = u32::from_be_bytes(*length) as usize;
        let data = behind.get(..length)?;
        self.0 = behind.get(length + length % 2..).unwrap_or_default();
        Some((u16::from_be_bytes(*number), data))
    }
}

/// Data sets: 1C, record, number, a length of two bytes below 32768, and data.
struct Records<'a>(&'a [u8]);

impl<'a> Iterator for Records<'a> {
    type Item = (u8, u8, &'a [u8]);

    fn next(&mut self) -> Option<(u8, u8, &'a [u8])> {
        let &[0x1c, record, number, high @ ..0x80, low, ref behind @ ..] = self.0 else {
            return None;
        };
        let (data, rest) = behind.split_at_checked(usize::from(u16::from_be_bytes([high, low])))?;
        self.0 = rest;
        Some((record, number, data))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Data sets: record, number and data.
    fn sets(sets: &[(u8, u8, &[u8])]) -> Vec<u8> {
        let set = |(record, number, data): &(u8, u8, &[u8])| {
            let length = (data.len() as u16).to_be_bytes();
            [&[0x1c, *record, *number], &length[..], data].concat()
        };
        sets.iter().flat_map(set).collect()
    }

    fn resource(number: u16, name: &[u8], data: &[u8]) -> Vec<u8> {
        let mut resource = [&b"8BIM"[..], &number.to_be_bytes()].concat();
        resource.push(name.len() as u8);
        resource.extend(name);
        resource.resize(resource.len().next_multiple_of(2), 0);
        resource.extend((data.len() as u32).to_be_bytes());
        resource.extend(data);
        resource.resize(resource.len().next_multiple_of(2), 0);
        resource
    }

    fn texts(data: &[u8]) -> Vec<String> {
        let found = read(&resource(0x0404, b"", data), &[80, 116]);
        found.into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn resources_of_odd_and_even_lengths_are_passed() {
        let data = sets(&[(2, 80, b"Ada")]);
        for (name, length) in [(&b""[..], 3), (b"x", 4), (b"xy", 5), (b"xyz", 0)] {
            let all = [
                resource(0x0409, name, &vec![7; length]),
                resource(0x0404, b"", &data),
            ];
            let found = read(&all.concat(), &[80]);
            assert_eq!(found, [(80, "Ada".to_owned())], "{length} bytes");
        }
    }

    #[test]
    fn the_wanted_sets_of_the_second_record_are_read_up_to_their_bound() {
        let most = vec![b'x'; 2 << 10];
        let more = vec![b'y'; (2 << 10) + 1];
        let data = sets(&[
            (1, 80, b"one"),
            (2, 90, b"two"),
            (2, 80, &more),
            (2, 116, &most),
            (2, 80, b"Ada"),
        ]);
        assert_eq!(
            texts(&data),
            [String::from_utf8(most).expect("ASCII"), "Ada".to_owned()]
        );
    }

    #[test]
    fn texts_are_utf_8_or_of_one_byte_a_letter() {
        let (latin, unicode) = (&b"Zo\xeb"[..], "Zo\u{eb}".as_bytes());
        assert_eq!(
            texts(&sets(&[(2, 80, latin), (2, 80, unicode)])),
            ["Zo\u{eb}"; 2]
        );
        let declared = sets(&[(1, 90, b"\x1b%G"), (2, 80, latin), (2, 80, unicode)]);
        assert_eq!(texts(&declared), ["Zo\u{fffd}", "Zo\u{eb}"]);
    }
}
