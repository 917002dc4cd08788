//! Names, rights and licenses in XMP (ISO 16684-1): those that a packet has, and a packet of them
//! alone.

use quick_xml::escape::{escape, resolve_predefined_entity, unescape_with};
use quick_xml::events::{BytesStart, Event};
use quick_xml::name::{LocalName, NamespaceResolver, ResolveResult};
use quick_xml::reader::NsReader;

/// The namespaces with the prefixes that they get. The first is that of RDF.
const NAMESPACES: [(&str, &str); 6] = [
    ("rdf", "http://www.w3.org/1999/02/22-rdf-syntax-ns#"),
    ("dc", "http://purl.org/dc/elements/1.1/"),
    ("xmpRights", "http://ns.adobe.com/xap/1.0/rights/"),
    ("cc", "http://creativecommons.org/ns#"),
    ("plus", "http://ns.useplus.org/ldf/xmp/1.0/"),
    ("photoshop", "http://ns.adobe.com/photoshop/1.0/"),
];

/// The form of a property's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Text,
    /// A URL in the attribute `rdf:resource`.
    Resource,
    /// An array of this kind.
    Array(&'static str),
    /// A text in several languages, of which the first one, the default, is kept.
    Languages,
    /// An array of structures, of which these fields are kept.
    Structures(&'static [&'static str]),
}

/// The properties that are kept: prefix, name and form.
const PROPERTIES: [(&str, &str, Form); 16] = [
    ("dc", "creator", Form::Array("Seq")),
    ("dc", "rights", Form::Languages),
    ("photoshop", "Credit", Form::Text),
    ("xmpRights", "Marked", Form::Text),
    ("xmpRights", "Owner", Form::Array("Bag")),
    ("xmpRights", "UsageTerms", Form::Languages),
    ("xmpRights", "WebStatement", Form::Text),
    ("xmpRights", "Certificate", Form::Text),
    ("cc", "license", Form::Resource),
    ("cc", "attributionName", Form::Text),
    ("cc", "attributionURL", Form::Resource),
    (
        "plus",
        "CopyrightOwner",
        Form::Structures(&["CopyrightOwnerName"]),
    ),
    (
        "plus",
        "Licensor",
        Form::Structures(&["LicensorName", "LicensorURL"]),
    ),
    ("plus", "TermsAndConditionsText", Form::Languages),
    ("plus", "TermsAndConditionsURL", Form::Text),
    ("plus", "DataMining", Form::Text),
];

/// The properties that IPTC has, too: creator, credit and copyright notice.
pub const CREATOR: usize = 0;
pub const RIGHTS: usize = 1;
pub const CREDIT: usize = 2;

/// Most bytes of all texts, and the most texts of a property: more are left out.
const MOST_BYTES: usize = 16 << 10;
const MOST_TEXTS: usize = 32;

/// A value of a property: the texts of its fields with their names, or one text without a name.
type Item = Vec<(&'static str, String)>;

/// The values of [`PROPERTIES`].
#[derive(Debug, Default)]
pub struct Properties {
    items: [Vec<Item>; PROPERTIES.len()],
    bytes: usize,
}

impl Properties {
    /// Reads a packet, as far as it is well-formed.
    pub fn read(packet: &[u8]) -> Properties {
        let valid = match str::from_utf8(packet) {
            Ok(packet) => packet,
            Err(error) => str::from_utf8(&packet[..error.valid_up_to()]).unwrap_or_default(),
        };
        let mut xml = NsReader::from_str(valid);
        let mut reader = Reader::default();
        while let Ok(event) = xml.read_event()
            && reader.take(&event, xml.resolver()).is_some()
        {}
        reader.properties
    }

    pub fn has(&self, property: usize) -> bool {
        !self.items[property].is_empty()
    }

    /// Adds a value that is one text.
    pub fn add_text(&mut self, property: usize, text: String) {
        self.add(property, vec![("", text)]);
    }

    /// Adds a value, unless it is empty, one too many, or a text where a structure belongs.
    fn add(&mut self, property: usize, mut item: Item) {
        let form = PROPERTIES[property].2;
        for (_, text) in &mut item {
            text.retain(is_allowed);
            *text = text.trim().to_owned();
        }
        let has_fields = matches!(form, Form::Structures(_));
        item.retain(|(field, text)| !text.is_empty() && field.is_empty() != has_fields);
        let bytes = self.bytes + item.iter().map(|(_, text)| text.len()).sum::<usize>();
        let most = match form {
            Form::Array(_) | Form::Structures(_) => MOST_TEXTS,
            Form::Text | Form::Resource | Form::Languages => 1,
        };
        let items = &mut self.items[property];
        if !item.is_empty() && items.len() < most && bytes <= MOST_BYTES {
            self.bytes = bytes;
            items.push(item);
        }
    }

    /// A packet of the values; `None` if there are none.
    pub fn packet(&self) -> Option<Vec<u8>> {
        if self.items.iter().all(Vec::is_empty) {
            return None;
        }
        let mut packet = "<?xpacket begin=\"\u{feff}\" id=\"W5M0MpCehiHzreSzNTczkc9d\"?>\
            <x:xmpmeta xmlns:x=\"adobe:ns:meta/\"><rdf:RDF"
            .to_owned();
        for (prefix, uri) in NAMESPACES {
            packet.extend([" xmlns:", prefix, "=\"", uri, "\""]);
        }
        packet += "><rdf:Description rdf:about=\"\">";
        for ((prefix, name, form), items) in PROPERTIES.iter().zip(&self.items) {
            if !items.is_empty() {
                write(&format!("{prefix}:{name}"), *form, items, &mut packet);
            }
        }
        packet += "</rdf:Description></rdf:RDF></x:xmpmeta><?xpacket end=\"w\"?>";
        Some(packet.into_bytes())
    }
}

/// Whether a document may have this character (XML 1.0, section 2.2).
fn is_allowed(letter: char) -> bool {
    !matches!(letter, '\0'..'\t' | '\u{b}' | '\u{c}' | '\u{e}'..' ' | '\u{fffe}' | '\u{ffff}')
}

fn write(name: &str, form: Form, items: &[Item], packet: &mut String) {
    let (array, attribute) = match form {
        Form::Text | Form::Resource => ("", ""),
        Form::Array(array) => (array, ""),
        Form::Languages => ("Alt", " xml:lang=\"x-default\""),
        Form::Structures(_) => ("Seq", " rdf:parseType=\"Resource\""),
    };
    let texts = items.iter().flatten();
    if form == Form::Resource {
        packet.extend(["<", name, " rdf:resource=\""]);
        texts.for_each(|(_, text)| packet.push_str(&escape(text)));
        packet.push_str("\"/>");
        return;
    }
    packet.extend(["<", name, ">"]);
    if array.is_empty() {
        texts.for_each(|(_, text)| packet.push_str(&escape(text)));
    } else {
        packet.extend(["<rdf:", array, ">"]);
        for item in items {
            packet.extend(["<rdf:li", attribute, ">"]);
            for (field, text) in item {
                if field.is_empty() {
                    packet.push_str(&escape(text));
                } else {
                    packet.extend(["<plus:", field, ">"]);
                    packet.push_str(&escape(text));
                    packet.extend(["</plus:", field, ">"]);
                }
            }
            packet.push_str("</rdf:li>");
        }
        packet.extend(["</rdf:", array, ">"]);
    }
    packet.extend(["</", name, ">"]);
}

/// A name with the prefix of its namespace in [`NAMESPACES`]; both are empty if it is of no use.
type Name = (&'static str, &'static str);

/// All names that are of use.
fn names() -> impl Iterator<Item = Name> {
    let rdf = ["RDF", "Description", "li", "resource"].map(|name| ("rdf", name));
    let properties = PROPERTIES.iter().flat_map(|(prefix, name, form)| {
        let fields = match form {
            Form::Structures(fields) => *fields,
            _ => &[],
        };
        let fields = fields.iter().map(|field| ("plus", *field));
        fields.chain([(*prefix, *name)])
    });
    rdf.into_iter().chain(properties)
}

fn resolve((namespace, local): (ResolveResult<'_>, LocalName<'_>)) -> Name {
    let prefix = match namespace {
        ResolveResult::Bound(namespace) => NAMESPACES
            .iter()
            .find(|(_, uri)| *uri == namespace.into_inner())
            .map_or("", |(prefix, _)| *prefix),
        _ => "",
    };
    let found = names().find(|name| *name == (prefix, local.into_inner()));
    found.unwrap_or_default()
}

/// Replaces the predefined entities and references to characters; others are left out.
fn unescape(text: &str) -> Option<String> {
    let known = |name: &str| resolve_predefined_entity(name).or(Some(""));
    let text = unescape_with(text, known).ok()?;
    (text.len() <= MOST_BYTES).then(|| text.into_owned())
}

/// The elements that are open, and the property in which the reader is.
#[derive(Default)]
struct Reader {
    open: Vec<Name>,
    /// The property, and the number of elements around it.
    property: Option<(usize, usize)>,
    /// The value, and the text of its innermost element.
    item: Item,
    text: String,
    properties: Properties,
}

impl Reader {
    /// Takes a part of the document; `None` at its end, at a document type, whose entities can be
    /// of any size, and where it nests deeper than any packet does.
    fn take(&mut self, event: &Event<'_>, namespaces: &NamespaceResolver) -> Option<()> {
        match event {
            Event::Start(tag) => self.start(tag, namespaces)?,
            Event::Empty(tag) => {
                self.start(tag, namespaces)?;
                self.end()?;
            }
            Event::End(_) => self.end()?,
            Event::Text(text) => self.add_text(text),
            Event::CData(text) => self.add_text(text),
            Event::GeneralRef(name) => {
                if let Some(text) = unescape(&format!("&{};", &**name)) {
                    self.add_text(&text);
                }
            }
            Event::Eof | Event::DocType(_) => return None,
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
        }
        Some(())
    }

    /// Adds a text that is of a property, and not more than any of use.
    fn add_text(&mut self, text: &str) {
        if self.property.is_some() && self.text.len() + text.len() <= MOST_BYTES {
            self.text.push_str(text);
        }
    }

    fn start(&mut self, tag: &BytesStart<'_>, namespaces: &NamespaceResolver) -> Option<()> {
        const MOST_DEPTH: usize = 64;
        let depth = self.open.len();
        if depth == MOST_DEPTH {
            return None;
        }
        let name = resolve(namespaces.resolve_element(tag.name()));
        let is_property = matches!(self.open[..], [.., ("rdf", "RDF"), ("rdf", "Description")]);
        if self.property.is_none() && is_property {
            self.property = property(name).map(|property| (property, depth));
            self.item.clear();
        }
        self.text.clear();
        let is_description =
            name == ("rdf", "Description") && matches!(self.open.last(), Some(("rdf", "RDF")));
        for attribute in tag.attributes().with_checks(false) {
            let attribute = attribute.ok()?;
            let name = resolve(namespaces.resolve_attribute(attribute.key));
            let Some(text) = Some(name)
                .filter(|name| *name != Name::default())
                .and_then(|_| unescape(&attribute.value))
            else {
                continue;
            };
            if let Some((property, _)) = self.property {
                if name == ("rdf", "resource") {
                    self.text = text;
                } else if let Some(field) = field(property, name) {
                    self.add_field(field, text);
                }
            } else if is_description && let Some(property) = property(name) {
                self.properties.add_text(property, text);
            }
        }
        self.open.push(name);
        Some(())
    }

    fn end(&mut self) -> Option<()> {
        let name = self.open.pop()?;
        let depth = self.open.len();
        if let Some((property, around)) = self.property {
            let text = std::mem::take(&mut self.text);
            if let Some(field) = field(property, name) {
                self.add_field(field, text);
            } else if name == ("rdf", "li") || depth == around {
                match PROPERTIES[property].2 {
                    Form::Structures(_) => {
                        let item = std::mem::take(&mut self.item);
                        self.properties.add(property, item);
                    }
                    _ => self.properties.add_text(property, text),
                }
            }
            if depth == around {
                self.property = None;
            }
        }
        Some(())
    }

    /// Adds a field of a structure, the first of its name.
    fn add_field(&mut self, field: &'static str, text: String) {
        if self.item.iter().all(|(name, _)| *name != field) && text.len() <= MOST_BYTES {
            self.item.push((field, text));
        }
    }
}

fn property(name: Name) -> Option<usize> {
    let mut properties = PROPERTIES.iter();
    properties.position(|(prefix, property, _)| (*prefix, *property) == name)
}

/// The name of a field of the property's structures, if it is kept.
fn field(property: usize, (prefix, name): Name) -> Option<&'static str> {
    match PROPERTIES[property].2 {
        Form::Structures(fields) if prefix == "plus" => {
            fields.iter().copied().find(|field| *field == name)
        }
        _ => None,
    }
}
