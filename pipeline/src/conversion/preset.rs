//! Presets: parameters that go with a token, so that its requests need not give them, or may not.
//!
//! The text of a preset has one parameter a line, `name=value`. A `!` before the name fixes the
//! parameter: a request that gives it, too, is an error. In values, `%` is written as `%25`, and a
//! line break as `%0A`.

use super::params::{PARAMETERS, ParamError, ParamProblem, Params};
use percent_encoding::{
    AsciiSet, CONTROLS, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode,
};

/// The characters that are escaped in a value.
const ESCAPED: AsciiSet = CONTROLS.add(b'%');

/// Groups of parameters that a request gives as one: if it gives one of them, none of the others is
/// taken from a preset.
const ALTERNATIVES: [&[&str]; 2] = [&["quality", "max_bytes", "target"], &["mode", "lossless"]];

/// If one of the first parameters is fixed, so are the second ones, by which it could be undone.
const FIXED_TOGETHER: [(&[&str], &[&str]); 4] = [
    (
        &[
            "quality",
            "max_bytes",
            "target",
            "best_effort",
            "default_quality",
        ],
        &[
            "quality",
            "max_bytes",
            "target",
            "best_effort",
            "default_quality",
        ],
    ),
    (&["mode", "lossless"], &["mode", "lossless"]),
    (
        &["width", "height"],
        &["width", "height", "fit", "gravity", "enlarge", "dpr"],
    ),
    (
        &["watermark", "watermark_image"],
        &[
            "watermark",
            "watermark_size",
            "watermark_color",
            "watermark_outline",
            "watermark_image",
            "watermark_position",
            "watermark_opacity",
            "watermark_margin",
            "watermark_scale",
            "watermark_rotate",
            "watermark_tile",
        ],
    ),
];

/// Parameters that requests need not give, or may not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preset {
    parameters: Vec<PresetParameter>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct PresetParameter {
    name: &'static str,
    value: String,
    is_fixed: bool,
}

impl Preset {
    /// Reads a preset, whose parameters together have to be ones that a request could give. Empty
    /// lines are passed over.
    ///
    /// # Errors
    /// [`ParamError`], for the first parameter at fault.
    pub fn parse(text: &str) -> Result<Preset, ParamError> {
        let preset = Preset::parse_stored(text)?;
        Params::parse(preset.pairs())?;
        Ok(preset)
    }

    /// Reads a text that [`Preset::parse`] checked before it was stored: the values are not read
    /// twice, since [`Preset::complete`] reads them.
    ///
    /// # Errors
    /// [`ParamError`], for a line that is no parameter.
    pub fn parse_stored(text: &str) -> Result<Preset, ParamError> {
        let lines = text.lines().map(str::trim);
        let parameters = lines.filter(|line| !line.is_empty()).map(parameter);
        Ok(Preset {
            parameters: parameters.collect::<Result<_, _>>()?,
        })
    }

    /// The text to store, which [`Preset::parse`] reads.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for parameter in &self.parameters {
            if parameter.is_fixed {
                text.push('!');
            }
            text.push_str(parameter.name);
            text.push('=');
            text.extend(utf8_percent_encode(&parameter.value, &ESCAPED));
            text.push('\n');
        }
        text
    }

    /// The parameters as a query, fixed ones like the others.
    pub fn query(&self) -> String {
        let pairs = self.pairs().map(|(name, value)| {
            let value = utf8_percent_encode(value, NON_ALPHANUMERIC);
            format!("{name}={value}")
        });
        pairs.collect::<Vec<_>>().join("&")
    }

    /// Reads the parameters of a request, and adds the preset's parameters that it does not give.
    ///
    /// # Errors
    /// [`ParamError`], for the first parameter at fault: also one that the preset fixes.
    pub fn complete<'a>(
        &self,
        given: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Result<Params, ParamError> {
        let given: Vec<_> = given.collect();
        let is_given = |name: &str| given.iter().any(|(other, _)| *other == name);
        if let Some((name, by)) = self.fixed().find(|(name, _)| is_given(name)) {
            return Err(fixed(name, by));
        }
        let displaces = |group: &&&[&str]| group.iter().any(|name| is_given(name));
        let displaced: Vec<&str> = ALTERNATIVES
            .iter()
            .filter(displaces)
            .flat_map(|group| group.iter().copied())
            .collect();
        let own = self
            .pairs()
            .filter(|(name, _)| !is_given(name) && !displaced.contains(name));
        let own: Vec<_> = own.collect();
        Params::parse(own.into_iter().chain(given.iter().copied()))
    }

    /// The value of a parameter, if the preset has it.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.pairs()
            .find(|(other, _)| *other == name)
            .map(|(_, value)| value)
    }

    /// The parameter that fixes this one, so that no request may give it.
    pub fn fixed_by(&self, name: &str) -> Option<&'static str> {
        self.fixed()
            .find(|(other, _)| *other == name)
            .map(|(_, by)| by)
    }

    /// The parameter of the preset in whose place a request may give this one: `target` for
    /// `quality`.
    pub fn alternative_to(&self, name: &str) -> Option<&'static str> {
        let groups = ALTERNATIVES.iter().filter(|group| group.contains(&name));
        let mut others = groups.flat_map(|group| group.iter().copied());
        others.find(|other| *other != name && self.value(other).is_some())
    }

    fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        let parameters = self.parameters.iter();
        parameters.map(|parameter| (parameter.name, parameter.value.as_str()))
    }

    /// The parameters that a request may not give, each with the one that fixes it.
    fn fixed(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let fixed = self.parameters.iter().filter(|it| it.is_fixed);
        fixed.flat_map(|parameter| {
            let by = parameter.name;
            let groups = FIXED_TOGETHER.iter();
            let together = groups.filter(move |(first, _)| first.contains(&by));
            let others = together.flat_map(|(_, others)| others.iter().copied());
            std::iter::once(by)
                .chain(others)
                .map(move |name| (name, by))
        })
    }
}

fn parameter(line: &str) -> Result<PresetParameter, ParamError> {
    let (name, value) = line.split_once('=').unwrap_or((line, ""));
    let (is_fixed, name) = match name.trim().strip_prefix('!') {
        Some(name) => (true, name.trim()),
        None => (false, name.trim()),
    };
    let known = PARAMETERS.iter().map(|parameter| parameter.name);
    let mut known = known.filter(|known| *known != "token");
    let Some(name) = known.find(|known| *known == name) else {
        let shown: String = name.chars().take(60).collect();
        return Err(invalid(
            "preset",
            format!("Parameter {shown:?}: there is no such parameter for a preset."),
        ));
    };
    let Ok(value) = percent_decode_str(value.trim()).decode_utf8() else {
        let detail = format!("Parameter {name}: the bytes after a % in its value are not UTF-8.");
        return Err(invalid(name, detail));
    };
    Ok(PresetParameter {
        name,
        value: value.into_owned(),
        is_fixed,
    })
}

fn invalid(name: &'static str, detail: String) -> ParamError {
    ParamError {
        name,
        problem: ParamProblem::Request,
        detail,
        code: "invalid_parameter",
    }
}

fn fixed(name: &'static str, by: &'static str) -> ParamError {
    let reason = if name == by {
        format!("Parameter {name} was given; this token fixes it, so that no request may give it.")
    } else {
        format!(
            "Parameter {name} was given; this token fixes {by}, and {name} with it, so that no request may give it."
        )
    };
    ParamError {
        name,
        problem: ParamProblem::Request,
        detail: reason,
        code: "fixed_parameter",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complete(preset: &str, given: &[(&str, &str)]) -> Result<Params, ParamError> {
        let preset = Preset::parse(preset).expect("a valid preset");
        preset.complete(given.iter().copied())
    }

    fn params(given: &[(&str, &str)]) -> Params {
        Params::parse(given.iter().copied()).expect("valid parameters")
    }

    #[test]
    fn what_a_request_does_not_give_comes_from_the_preset() {
        let preset = "quality=40\nwidth=800\n\n  watermark = a b \n";
        assert_eq!(
            complete(preset, &[]).unwrap(),
            params(&[("quality", "40"), ("width", "800"), ("watermark", "a b")])
        );
        assert_eq!(
            complete(preset, &[("width", "9"), ("watermark", "")]).unwrap(),
            params(&[("quality", "40"), ("width", "9"), ("watermark", "")])
        );
        for (name, value) in [("target", "70"), ("max_bytes", "9k")] {
            let expected = params(&[(name, value), ("width", "800"), ("watermark", "a b")]);
            assert_eq!(complete(preset, &[(name, value)]).unwrap(), expected);
        }
        assert_eq!(
            complete("lossless=true", &[("mode", "lossy")]).unwrap(),
            params(&[("mode", "lossy")])
        );
        assert_eq!(complete("", &[]).unwrap(), params(&[]));
    }

    #[test]
    fn what_is_fixed_cannot_be_given_nor_undone() {
        for (preset, name, value) in [
            ("!quality=40", "quality", "40"),
            ("!quality=40", "target", "90"),
            ("!target=40", "quality", "90"),
            ("!mode=lossy", "lossless", "true"),
            ("!width=100", "dpr", "8"),
            ("!height=100", "enlarge", "true"),
            ("!watermark=c", "watermark", ""),
            ("!watermark=c", "watermark_opacity", "0"),
            ("! watermark=c", "watermark_size", "8"),
            (
                "!watermark_image=https://example.org/a.png",
                "watermark_scale",
                "1",
            ),
            ("!effort=low", "effort", "max"),
        ] {
            let error = complete(preset, &[(name, value)]).expect_err(name);
            assert_eq!((error.name, error.code), (name, "fixed_parameter"));
            assert!(error.detail.contains(name), "{}", error.detail);
        }
        let free = complete("!watermark=c\nquality=7", &[("quality", "9")]).unwrap();
        assert_eq!(free.quality, 9);
        let free = complete("!watermark_opacity=9", &[("watermark", "c")]).unwrap();
        assert_eq!(free.placement.opacity, 9);
    }

    /// A request could drop a watermark if it got the input itself.
    #[test]
    fn the_original_is_not_sent_in_place_of_a_watermark() {
        let error = complete("!watermark=c", &[("if_larger", "original")]).unwrap_err();
        assert_eq!(error.name, "if_larger");
    }

    #[test]
    fn every_watermark_parameter_is_fixed_with_the_watermark() {
        let names = PARAMETERS.iter().map(|parameter| parameter.name);
        let names = names.filter(|name| name.starts_with("watermark"));
        let (_, fixed) = FIXED_TOGETHER[3];
        assert_eq!(names.collect::<Vec<_>>(), fixed);
    }

    #[test]
    fn a_preset_tells_what_holds_without_a_request() {
        let preset = Preset::parse("!target=70\nwidth=800").unwrap();
        assert_eq!(preset.value("width"), Some("800"));
        assert_eq!(preset.value("height"), None);
        assert_eq!(preset.fixed_by("target"), Some("target"));
        assert_eq!(preset.fixed_by("quality"), Some("target"));
        assert_eq!(preset.fixed_by("width"), None);
        assert_eq!(preset.alternative_to("quality"), Some("target"));
        assert_eq!(preset.alternative_to("target"), None);
        assert_eq!(preset.alternative_to("width"), None);
    }

    #[test]
    fn a_preset_comes_back_from_its_text() {
        let text = "!watermark=100%25 a%0Ab=c\nquality=40\n";
        let preset = Preset::parse(text).unwrap();
        assert_eq!(preset.text(), text);
        assert_eq!(
            preset.complete(std::iter::empty()).unwrap(),
            params(&[("watermark", "100% a\nb=c"), ("quality", "40")])
        );
        assert_eq!(Preset::parse("").unwrap(), Preset::default());
    }

    #[test]
    fn what_no_request_could_give_is_no_preset() {
        for (text, expected) in [
            ("qality=4", "\"qality\": there is no such parameter"),
            ("token=twp_", "\"token\": there is no such parameter"),
            ("quality=high", "a whole number from 0 to 100"),
            ("quality=4\n!quality=5", "more than once"),
            ("quality=4\ntarget=50", "both were given"),
            ("watermark=%ff", "not UTF-8"),
            ("watermark=a\nif_larger=original", "if_larger"),
        ] {
            let error = Preset::parse(text).expect_err(text);
            assert!(error.detail.contains(expected), "{}", error.detail);
        }
    }
}
