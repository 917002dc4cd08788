//! The fields of the page that converts: one for each row of the table of parameters.

use maud::{Markup, html};
use towebp_pipeline::conversion::{DefaultValue, PARAMETERS, Parameter, Preset, Value};

/// The groups of the fields, each with the parameters that stand in it, in this order. A parameter
/// that stands in none is one of the last group.
const GROUPS: [(&str, &str); 7] = [
    ("Quality", "quality"),
    ("Size", "width height fit"),
    (
        "Watermark",
        "watermark watermark_position watermark_opacity",
    ),
    ("Compression", "effort mode max_bytes best_effort target"),
    ("Resizing", "crop gravity enlarge dpr"),
    (
        "More of the watermark",
        "watermark_size watermark_color watermark_outline watermark_image watermark_scale watermark_margin \
         watermark_rotate watermark_tile",
    ),
    (
        "Details",
        "default_quality alpha_quality near_lossless lossless",
    ),
];

/// The number of groups before the fold.
const BASIC_GROUPS: usize = 3;

/// The words of some values on this page.
const WORDS: [(&str, &str); 4] = [
    ("low", "fast"),
    ("medium", "balanced"),
    ("high", "small"),
    ("max", "smallest"),
];

/// The parameters of which at most one is given. Forms of browsers without the script give every
/// value that a field has, so that these fields have none.
const RIVALS: [&str; 3] = ["quality", "max_bytes", "target"];

/// All fields: the basic ones, and the others under one fold, which is open if the preset has some
/// of them. A field has the value of the token's preset, or the default; fixed values cannot be
/// edited.
pub fn fields(preset: &Preset) -> Markup {
    let (basic, advanced) = GROUPS.split_at(BASIC_GROUPS);
    let advanced: Vec<_> = advanced
        .iter()
        .map(|(group, names)| (group, rows(group, names)))
        .collect();
    let mut in_advanced = advanced.iter().flat_map(|(_, rows)| rows);
    html! {
        @for (group, names) in basic {
            div.fields role="group" aria-label=(group) {
                @for row in rows(group, names) { (field(row, preset)) }
            }
        }
        details #advanced open[in_advanced.any(|row| preset.value(row.name).is_some())] {
            summary { "Advanced" }
            @for (group, rows) in &advanced {
                div.fields role="group" aria-label=(group) {
                    h3 { (group) }
                    @for row in rows { (field(row, preset)) }
                }
            }
        }
    }
}

/// The parameters of a group.
fn rows(group: &str, names: &str) -> Vec<&'static Parameter> {
    let row = |name| PARAMETERS.iter().find(|row| row.name == name);
    let mut rows: Vec<_> = names.split(' ').filter_map(row).collect();
    if group == GROUPS[GROUPS.len() - 1].0 {
        let is_elsewhere = |name| {
            GROUPS
                .iter()
                .any(|(_, names)| names.split(' ').any(|it| it == name))
        };
        let others = PARAMETERS.iter().filter(|row| !is_elsewhere(row.name));
        rows.extend(others.filter(|row| !matches!(row.value, Value::Token)));
    }
    rows
}

/// One field with its label and its meaning. With its first value, or empty, it is not given.
fn field(row: &Parameter, preset: &Preset) -> Markup {
    let Parameter { name, value, .. } = *row;
    let (id, hint) = (format!("p-{name}"), format!("h-{name}"));
    let (DefaultValue::Given(plain) | DefaultValue::Other(plain)) = row.default;
    let of_preset = preset.value(name);
    let fixed_by = preset.fixed_by(name);
    let (is_fixed, fixed) = (fixed_by.is_some(), fixed_by.map(|_| ""));
    let alternative = preset
        .alternative_to(name)
        .map(|other| format!("as {} says", lower(other)));
    let default = of_preset.or(alternative.as_deref()).unwrap_or(plain);
    let is_value = of_preset.is_some() || matches!(row.default, DefaultValue::Given(_));
    let given = (is_value && !RIVALS.contains(&name) && value.is_in_range(default))
        .then(|| default.trim_end_matches(|c| c == '%' && matches!(value, Value::Percent(..))));
    // The script shows this in place of a preset's value once a request displaces that.
    let displaced = of_preset.map(|_| plain);
    let words = value.words();
    let is_chosen = |word: &str| word.eq_ignore_ascii_case(&default.replace('-', ""));
    let label = html! { label for=(id) { (title(name)) } };
    let input = match value {
        // A box that is not ticked could not undo the preset's value.
        Value::Word(_) if words == ["true", "false"] && default == plain && !is_fixed => {
            return html! {
                div.param {
                    label.check {
                        input id=(id) type="checkbox" name=(name) value="true" aria-describedby=(hint);
                        (title(name))
                    }
                    p.hint id=(hint) { (meaning(row.meaning)) }
                }
            };
        }
        // Nine positions, or the few steps of one scale.
        Value::Word(_) if words.len() == 9 || name == "effort" => {
            return html! {
                fieldset.param id=(id) aria-describedby=(hint) {
                    legend { (title(name)) }
                    div class=(if words.len() == 9 { "positions" } else { "segments" }) {
                        @for word in words {
                            @let text = WORDS.iter().find(|(it, _)| *it == word).map_or(word, |(_, text)| text);
                            label title=(word) {
                                input type="radio" name=(name) value=(word) checked[is_chosen(word)] disabled[is_fixed];
                                span { (text) }
                            }
                        }
                    }
                    (explanation(row, &hint, fixed_by))
                }
            };
        }
        Value::Word(_) => html! {
            select id=(id) name=(name) disabled[is_fixed] aria-describedby=(hint) {
                @if !words.iter().any(|word| is_chosen(word)) { option value="" selected { (default) } }
                @for word in words { option value=(word) selected[is_chosen(word)] { (word) } }
            }
        },
        Value::Number(min, max) | Value::Percent(min, max) => html! {
            input id=(id) type="number" name=(name) min=(min) max=(max) value=[given] placeholder=(default)
                data-preset=[of_preset] data-plain=[displaced] data-fixed=[fixed] disabled[is_fixed]
                aria-describedby=(hint);
        },
        Value::Decimal(min, max) => html! {
            input id=(id) type="number" name=(name) min=(thousandths(min)) max=(thousandths(max))
                step="0.001" value=[given] placeholder=(default) disabled[is_fixed] aria-describedby=(hint);
        },
        Value::Text => html! {
            textarea id=(id) name=(name) rows="2" maxlength="1000" placeholder=[of_preset]
                disabled[is_fixed] aria-describedby=(hint) {}
        },
        Value::Url => html! {
            input id=(id) type="url" name=(name) placeholder=(of_preset.unwrap_or(row.example))
                pattern="https?://.+" disabled[is_fixed] aria-describedby=(hint);
        },
        Value::Color(_) => html! {
            input id=(id) type="text" name=(name) value=[given] placeholder=(default) list=(format!("l-{name}"))
                pattern=(color_pattern(&words)) title={ "Such as " (row.example) } spellcheck="false"
                autocomplete="off" data-color disabled[is_fixed] aria-describedby=(hint);
            datalist id=(format!("l-{name}")) {
                @for word in words { option value=(word) {} }
            }
        },
        _ => html! {
            input id=(id) type="text" name=(name) value=[given] placeholder=(default) spellcheck="false"
                autocomplete="off" pattern=[pattern(value)] title={ "Such as " (row.example) }
                data-preset=[of_preset] data-plain=[displaced] data-fixed=[fixed] disabled[is_fixed]
                aria-describedby=(hint);
        },
    };
    html! { div.param { (label) (input) (explanation(row, &hint, fixed_by)) } }
}

/// The meaning of a parameter, under this id; and that it is fixed, if it is.
fn explanation(row: &Parameter, id: &str, fixed_by: Option<&str>) -> Markup {
    html! {
        p.hint id=(id) {
            @if let Some(by) = fixed_by {
                strong {
                    "Fixed by the token" @if by != row.name { ", with " (lower(by)) } "."
                }
                " "
            }
            (meaning(row.meaning))
        }
    }
}

/// A parameter's name within a sentence.
fn lower(name: &str) -> String {
    name.replace('_', " ")
}

/// The pattern by which browsers check a text before it is sent.
fn pattern(value: Value) -> Option<&'static str> {
    match value {
        Value::Size(..) => Some("[0-9]+([kKmMgG]([iI]?[bB])?|[bB])?"),
        Value::Rectangle => Some("([0-9]+,){3}[0-9]+"),
        Value::Length { has_auto: true, .. } => Some(r"auto|[0-9]+|[0-9]+(\.[0-9]+)?%"),
        Value::Length { .. } => Some(r"[0-9]+|[0-9]+(\.[0-9]+)?%"),
        _ => None,
    }
}

/// The pattern of a color: these words in any case of letters, or hexadecimal digits.
fn color_pattern(words: &[&str]) -> String {
    let any_case = |letter: char| format!("[{letter}{}]", letter.to_ascii_uppercase());
    let words = words
        .iter()
        .map(|word| word.chars().map(any_case).collect::<String>() + "|");
    words.collect::<String>() + "#?([0-9a-fA-F]{3}){1,2}"
}

fn thousandths(number: i32) -> f64 {
    f64::from(number) / 1000.0
}

/// A parameter's name as a label. The group's name shows that it is of a watermark.
fn title(name: &str) -> String {
    let name = name.strip_prefix("watermark_").unwrap_or(name);
    let mut title = name.replace('_', " ");
    if let Some(first) = title.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    title
}

/// A parameter's meaning as a sentence. The words that it begins with stand in the field itself.
fn meaning(markdown: &str) -> Markup {
    let is_word = |part: &str| part.starts_with('`') && part.ends_with('`');
    match markdown.split_once(": ") {
        Some((words, rest)) if words.split(", ").all(is_word) => sentence(rest),
        _ => sentence(markdown),
    }
}

/// The table's Markdown, in which the only marks are those of code, as a sentence.
fn sentence(markdown: &str) -> Markup {
    let parts = markdown.split('`').enumerate();
    html! {
        @for (index, part) in parts {
            @if index % 2 == 1 { code { (part) } }
            @else if index == 0 {
                @let (first, rest) = part.split_at(part.chars().next().map_or(0, char::len_utf8));
                (first.to_uppercase()) (rest)
            }
            @else { (part) }
        }
        "."
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_parameter_has_one_field_whatever_its_group() {
        let text = fields(&Preset::default()).into_string();
        for row in PARAMETERS {
            let fields = text.matches(&format!(" id=\"p-{}\"", row.name)).count();
            let expected = usize::from(row.name != "token");
            assert_eq!(
                text.contains(&format!(" name=\"{}\"", row.name)),
                expected == 1
            );
            assert_eq!(fields, expected, "{} in {text}", row.name);
        }
        for name in GROUPS.iter().flat_map(|(_, names)| names.split(' ')) {
            let is_known = PARAMETERS.iter().any(|row| row.name == name);
            assert!(is_known, "{name} stands in a group and is no parameter");
        }
    }

    #[test]
    fn ranges_and_defaults_are_those_of_the_table() {
        let text = fields(&Preset::default()).into_string();
        for expected in [
            "name=\"quality\" min=\"0\" max=\"100\" placeholder=\"85\"",
            "name=\"dpr\" min=\"0.1\" max=\"8\" step=\"0.001\" value=\"1\"",
            "name=\"watermark_opacity\" min=\"0\" max=\"100\" value=\"50\"",
            "<option value=\"auto\" selected>auto</option><option value=\"lossy\">lossy</option>",
            "name=\"effort\" value=\"medium\" checked><span>balanced</span>",
            "name=\"effort\" value=\"max\"><span>smallest</span>",
            "name=\"watermark_position\" value=\"bottomRight\" checked>",
        ] {
            assert!(text.contains(expected), "{expected} in {text}");
        }
    }

    #[test]
    fn a_preset_is_shown_and_what_it_fixes_cannot_be_edited() {
        let preset =
            Preset::parse("target=70\n!watermark=© a\nlossless=false\nenlarge=true").unwrap();
        let text = fields(&preset).into_string();
        let field = |name: &str| {
            let (_, rest) = text.split_once(&format!(" name=\"{name}\"")).expect(name);
            rest.split_once("</div>").expect("its end").0.to_owned()
        };
        assert!(
            field("target").contains("placeholder=\"70\" data-preset=\"70\" data-plain=\"none\"")
        );
        assert!(field("quality").contains("placeholder=\"as target says\""));
        assert!(field("enlarge").contains("<option value=\"true\" selected>true</option>"));
        assert!(
            field("mode").contains("<option value=\"\" selected>as lossless says</option>"),
            "{}",
            field("mode")
        );
        for name in [
            "watermark",
            "watermark_size",
            "watermark_color",
            "watermark_tile",
        ] {
            let field = field(name);
            assert!(
                field.contains(" disabled") && field.contains("Fixed by the token"),
                "{field}"
            );
        }
        assert!(field("watermark").contains("placeholder=\"© a\""));
        assert!(!field("quality").contains(" disabled"));
        assert!(text.contains("<details id=\"advanced\" open>"), "{text}");
        let plain = fields(&Preset::parse("quality=60\nwatermark_position=top-left").unwrap());
        let plain = plain.into_string();
        assert!(plain.contains("<details id=\"advanced\">"), "{plain}");
        assert!(plain.contains("value=\"topLeft\" checked>"), "{plain}");
    }

    #[test]
    fn colors_are_words_in_any_case_or_digits() {
        assert_eq!(
            color_pattern(&["red"]),
            "[rR][eE][dD]|#?([0-9a-fA-F]{3}){1,2}"
        );
    }

    #[test]
    fn labels_and_meanings_are_for_people() {
        assert_eq!(title("watermark_size"), "Size");
        assert_eq!(title("max_bytes"), "Max bytes");
        assert_eq!(title("watermark"), "Watermark");
        for (markdown, expected) in [
            (
                "0 to 5; `a<b` is more",
                "0 to 5; <code>a&lt;b</code> is more.",
            ),
            ("`low`, `high`: how much: or little", "How much: or little."),
            (
                "with `fit=cover`: the part",
                "With <code>fit=cover</code>: the part.",
            ),
        ] {
            assert_eq!(meaning(markdown).into_string(), expected);
        }
    }
}
