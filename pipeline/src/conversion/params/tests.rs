//! Values of parameters, and the errors of those that are not allowed.

use super::*;

fn parse(pairs: &[(&str, &str)]) -> Result<Params, ParamError> {
    Params::parse(pairs.iter().copied())
}

fn parsed(pairs: &[(&str, &str)]) -> Params {
    parse(pairs).unwrap_or_else(|error| panic!("{pairs:?}: {error}"))
}

#[test]
fn defaults_are_those_of_the_specification() {
    let expected = Params {
        quality: 85,
        follows_source: false,
        goal: None,
        effort: Effort::Medium,
        mode: Mode::Auto,
        alpha_quality: 100,
        near_lossless: 100,
        animation: Animation::All,
        metadata: Keep::NOTHING,
        placeholder: false,
        if_larger: IfLarger::Webp,
        background: None,
        crop: None,
        sizing: Sizing {
            width: None,
            height: None,
            fit: Fit::Contain,
            gravity: Position::Center,
            enlarges: false,
            dpr: 1000,
        },
        text: None,
        picture_url: None,
        placement: Placement {
            position: Position::BottomRight,
            margin: None,
            scale: None,
            rotate: 0,
            is_tiled: false,
            opacity: 50,
        },
    };
    assert_eq!(parsed(&[]), expected);
    assert_eq!(
        parsed(&[("watermark", "©")]).text,
        Some(TextWatermark {
            text: "©".to_owned(),
            size: TextSize::Given(Length::Pixels(24)),
            color: Color::WHITE,
            outline: Outline::None,
        })
    );
}

#[test]
fn every_parameter_is_read() {
    let params = parsed(&[
        ("token", "secret"),
        ("quality", "70"),
        ("effort", "high"),
        ("watermark", "© me"),
        ("watermark_size", "32"),
        ("watermark_color", "#0a0B0c"),
        ("watermark_image", "https://example.org/logo.png"),
        ("watermark_position", "topLeft"),
        ("watermark_opacity", "25"),
        ("watermark_outline", "shadow"),
        ("watermark_margin", "33"),
        ("watermark_scale", "44"),
        ("watermark_rotate", "-55"),
        ("watermark_tile", "true"),
        ("mode", "lossless"),
        ("alpha_quality", "66"),
        ("near_lossless", "55"),
        ("animation", "first"),
        ("metadata", "keep"),
        ("placeholder", "true"),
        ("width", "800"),
        ("height", "90"),
        ("fit", "cover"),
        ("gravity", "top-left"),
        ("enlarge", "true"),
        ("dpr", "1.5"),
        ("background", "#102030"),
        ("crop", "1,2,3,4"),
    ]);
    let expected = Params {
        quality: 70,
        follows_source: false,
        goal: None,
        effort: Effort::High,
        mode: Mode::Lossless,
        alpha_quality: 66,
        near_lossless: 55,
        animation: Animation::First,
        metadata: Keep::ALL,
        placeholder: true,
        if_larger: IfLarger::Webp,
        background: Some(Color::new(16, 32, 48)),
        crop: Some(Rectangle {
            left: 1,
            top: 2,
            width: 3,
            height: 4,
        }),
        sizing: Sizing {
            width: Some(800),
            height: Some(90),
            fit: Fit::Cover,
            gravity: Position::TopLeft,
            enlarges: true,
            dpr: 1500,
        },
        text: Some(TextWatermark {
            text: "© me".to_owned(),
            size: TextSize::Given(Length::Pixels(32)),
            color: Color::new(10, 11, 12),
            outline: Outline::Shadow,
        }),
        picture_url: Some("https://example.org/logo.png".to_owned()),
        placement: Placement {
            position: Position::TopLeft,
            margin: Some(Length::Pixels(33)),
            scale: Some(44),
            rotate: -55,
            is_tiled: true,
            opacity: 25,
        },
    };
    assert_eq!(params, expected);
}

#[test]
fn the_original_stands_in_only_for_the_same_picture() {
    let original = ("if_larger", "original");
    assert_eq!(parsed(&[original]).if_larger, IfLarger::Original);
    // Without a text or a picture these have no effect.
    let others = [original, ("watermark", ""), ("watermark_size", "30")];
    assert_eq!(parsed(&others).if_larger, IfLarger::Original);
    for other in ["watermark", "watermark_image"] {
        let error = parse(&[(other, "x"), original]).expect_err("they contradict each other");
        assert_eq!((error.name, error.code), ("if_larger", "invalid_parameter"));
        let names = format!("Parameters if_larger and {other}:");
        assert!(error.detail.starts_with(&names), "{}", error.detail);
        parsed(&[(other, "x"), ("if_larger", "webp")]);
    }
}

#[test]
fn lossless_is_a_mode_and_contradicts_another() {
    for (pairs, expected) in [
        (&[("lossless", "true")][..], Mode::Lossless),
        (&[("lossless", "false")], Mode::Auto),
        (&[("lossless", "false"), ("mode", "lossy")], Mode::Lossy),
        (
            &[("lossless", "false"), ("mode", "lossless")],
            Mode::Lossless,
        ),
        (
            &[("mode", "lossless"), ("lossless", "true")],
            Mode::Lossless,
        ),
        (&[("mode", "auto"), ("lossless", "true")], Mode::Lossless),
    ] {
        assert_eq!(parsed(pairs).mode, expected, "{pairs:?}");
    }
    for pairs in [
        [("lossless", "true"), ("mode", "lossy")],
        [("mode", "lossy"), ("lossless", "true")],
    ] {
        let error = parse(&pairs).expect_err("they contradict each other");
        assert_eq!((error.name, error.code), ("lossless", "invalid_parameter"));
        for word in ["lossless", "mode", "true", "lossy"] {
            assert!(error.detail.contains(word), "{error}");
        }
    }
    let error = parse(&[("lossless", "yes")]).expect_err("no such word");
    assert!(error.detail.contains("true or false"), "{error}");
}

#[test]
fn numbers_out_of_range_are_capped() {
    for (value, quality, size) in [
        ("0", 0, 8),
        ("-0", 0, 8),
        ("-1", 0, 8),
        ("-99999999999999999999", 0, 8),
        ("007", 7, 8),
        ("8", 8, 8),
        ("100", 100, 100),
        ("101", 100, 101),
        ("200", 100, 200),
        ("201", 100, 200),
        ("65536", 100, 200),
        ("99999999999999999999", 100, 200),
    ] {
        assert_eq!(
            parsed(&[("quality", value)]).quality,
            quality,
            "quality={value}"
        );
        assert_eq!(
            parsed(&[("watermark_opacity", value)]).placement.opacity,
            quality,
            "watermark_opacity={value}"
        );
        let text = parsed(&[("watermark", "x"), ("watermark_size", value)])
            .text
            .expect("a text was given");
        let expected = TextSize::Given(Length::Pixels(size));
        assert_eq!(text.size, expected, "watermark_size={value}");
    }
}

#[test]
fn margins_scales_and_turns_out_of_range_are_capped() {
    for (value, margin, scale, rotate) in [
        ("-99999999999999999999", 0, 1, -360),
        ("-361", 0, 1, -360),
        ("-360", 0, 1, -360),
        ("-45", 0, 1, -45),
        ("0", 0, 1, 0),
        ("1", 1, 1, 1),
        ("100", 100, 100, 100),
        ("101", 101, 100, 101),
        ("360", 360, 100, 360),
        ("361", 361, 100, 360),
        ("16383", 16383, 100, 360),
        ("16384", 16383, 100, 360),
        ("99999999999999999999", 16383, 100, 360),
    ] {
        let placement = parsed(&[
            ("watermark_margin", value),
            ("watermark_scale", value),
            ("watermark_rotate", value),
        ])
        .placement;
        assert_eq!(
            (placement.margin, placement.scale, placement.rotate),
            (Some(Length::Pixels(margin)), Some(scale), rotate),
            "{value}"
        );
    }
}

#[test]
fn a_value_that_is_no_whole_number_is_rejected_by_name() {
    for name in [
        "quality",
        "watermark_size",
        "watermark_opacity",
        "watermark_margin",
        "watermark_scale",
        "watermark_rotate",
    ] {
        for value in [
            "", " ", "-", "+5", " 5", "5 ", "8.5", "1e2", "0x10", "many", "٣", "--5", "5%%", "%",
            "+5%", "5 %", ".5%", "5.%", "Auto",
        ] {
            let error = parse(&[(name, value)]).expect_err(value);
            assert_eq!(
                (error.name, error.code),
                (name, "invalid_parameter"),
                "{value:?}"
            );
        }
    }
    for (name, allowed) in [
        ("watermark_opacity", "a whole number from 0 to 100."),
        (
            "watermark_size",
            "a whole number from 8 to 200, auto, or a percentage from 0.1% to 100%, whose % a URL needs as %25.",
        ),
        (
            "watermark_margin",
            "a whole number from 0 to 16383, or a percentage from 0% to 25%, whose % a URL needs as %25.",
        ),
        (
            "watermark_scale",
            "a whole number from 1 to 100, perhaps followed by %, which a URL needs as %25.",
        ),
    ] {
        let error = parse(&[(name, "8.5")]).expect_err("not whole");
        let expected = format!("Parameter {name}: \"8.5\" was given; allowed is {allowed}");
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn lengths_are_pixels_or_percent_and_a_size_may_be_automatic() {
    let read = |value| {
        let names = ["watermark_size", "watermark_margin", "watermark_scale"];
        let pairs = names.map(|name| (name, value));
        let params = parsed(&[&pairs[..], &[("watermark", "x")]].concat());
        let text = params.text.expect("a text was given");
        let placement = params.placement;
        (text.size, placement.margin, placement.scale)
    };
    for (value, size, margin, scale) in [
        ("3%", 3000, 3000, 3),
        ("0%", 100, 0, 1),
        ("-0%", 100, 0, 1),
        ("-3%", 100, 0, 1),
        ("25%", 25_000, 25_000, 25),
        ("26%", 26_000, 25_000, 26),
        ("101%", 100_000, 25_000, 100),
        ("99999999999%", 100_000, 25_000, 100),
    ] {
        let expected = (
            TextSize::Given(Length::Share(size)),
            Some(Length::Share(margin)),
            Some(scale),
        );
        assert_eq!(read(value), expected, "{value}");
    }
    for (value, share) in [("2.5%", 2500), ("1.23456%", 1234), ("0.01%", 100)] {
        let text = parsed(&[("watermark", "x"), ("watermark_size", value)]).text;
        let expected = TextSize::Given(Length::Share(share));
        assert_eq!(text.expect("a text").size, expected, "{value}");
    }
    assert!(parse(&[("watermark_scale", "2.5%")]).is_err());
    for name in ["quality", "watermark_opacity", "watermark_rotate", "width"] {
        assert!(parse(&[(name, "5%")]).is_err(), "{name}");
    }
    let text = parsed(&[("watermark", "x"), ("watermark_size", "auto")]).text;
    assert_eq!(text.expect("a text").size, TextSize::Auto);
    assert!(parse(&[("watermark_margin", "auto")]).is_err());
}

#[test]
fn unknown_efforts_positions_and_colors_are_rejected_with_the_allowed_ones() {
    let error = parse(&[("effort", "6")]).expect_err("unknown");
    assert_eq!(
        error.detail,
        "Parameter effort: \"6\" was given; allowed is low, medium, high or max."
    );
    let error = parse(&[("watermark_position", "middle")]).expect_err("unknown");
    assert_eq!(
        error.detail,
        "Parameter watermark_position: \"middle\" was given; \
         allowed is topLeft, top, topRight, left, center, right, bottomLeft, bottom or bottomRight."
    );
    let error = parse(&[("watermark_color", "pink")]).expect_err("unknown");
    assert_eq!(
        error.detail,
        "Parameter watermark_color: \"pink\" was given; allowed is white, black, red, blue, yellow, gray, #RRGGBB or #RGB."
    );
    let error = parse(&[("watermark_color", "")]).expect_err("a plain # cut it off");
    assert!(
        error.detail.contains("watermark_color=%23ffcc00"),
        "{error}"
    );
    let error = parse(&[("watermark_outline", "glow")]).expect_err("unknown");
    assert_eq!(
        error.detail,
        "Parameter watermark_outline: \"glow\" was given; allowed is none, outline or shadow."
    );
    for value in ["", "1", "True", "yes"] {
        let error = parse(&[("watermark_tile", value)]).expect_err(value);
        assert_eq!(
            error.detail,
            format!("Parameter watermark_tile: {value:?} was given; allowed is true or false.")
        );
    }
    let error = parse(&[("metadata", "yes")]).expect_err("unknown");
    assert_eq!(
        error.detail,
        "Parameter metadata: \"yes\" was given; allowed is strip, copyright, icc or keep."
    );
    for value in ["", "Low", " low"] {
        assert!(parse(&[("effort", value)]).is_err(), "{value:?}");
    }
    assert!(parse(&[("watermark_position", "")]).is_err());
}

#[test]
fn every_effort_has_its_name() {
    for (value, effort) in [
        ("low", Effort::Low),
        ("medium", Effort::Medium),
        ("high", Effort::High),
        ("max", Effort::Max),
    ] {
        assert_eq!(parsed(&[("effort", value)]).effort, effort, "{value}");
    }
}

#[test]
fn names_of_colors_are_read_in_any_case() {
    let text = parsed(&[("watermark", "x"), ("watermark_color", "YELLOW")])
        .text
        .expect("a text was given");
    assert_eq!(text.color, Color::new(255, 255, 0));
}

#[test]
fn an_empty_watermark_is_none() {
    assert_eq!(
        parsed(&[("watermark", ""), ("watermark_size", "30")]).text,
        None
    );
    assert_eq!(parsed(&[("watermark_image", "")]).picture_url, None);
}

#[test]
fn a_known_parameter_given_twice_is_rejected_and_unknown_ones_are_ignored() {
    for Parameter { name, .. } in PARAMETERS {
        let value = match name {
            "effort" => "low",
            "mode" => "lossy",
            "animation" => "first",
            "metadata" => "strip",
            "default_quality" => "source",
            "if_larger" => "webp",
            "watermark_color" | "background" => "red",
            "crop" => "0,0,9,9",
            "watermark_position" => "center",
            "watermark_outline" => "none",
            "watermark_tile" | "lossless" | "enlarge" | "best_effort" | "placeholder" => "true",
            "fit" => "fill",
            "gravity" => "top",
            _ => "9",
        };
        let error = parse(&[(name, value), (name, value)]).expect_err(name);
        assert_eq!((error.name, error.code), (name, "repeated_parameter"));
    }
    assert_eq!(
        parsed(&[("wide", "1"), ("wide", "2"), ("Quality", "3")]),
        parsed(&[])
    );
}

#[test]
fn a_quality_that_is_named_goes_before_the_source() {
    let source = ("default_quality", "source");
    assert!(
        !parsed(&[]).follows_source,
        "the specification's default is 85"
    );
    assert!(parsed(&[source]).follows_source);
    assert_eq!(parsed(&[source]).quality, 85);
    assert!(!parsed(&[("default_quality", "fixed")]).follows_source);
    for named in [("quality", "85"), ("max_bytes", "9k"), ("target", "70")] {
        assert!(!parsed(&[source, named]).follows_source, "{named:?}");
        assert!(!parsed(&[named, source]).follows_source, "{named:?}");
    }
    assert!(parse(&[("default_quality", "70")]).is_err());
}

#[test]
fn long_values_are_shown_in_part() {
    let error = parse(&[("quality", &"é".repeat(5000))]).expect_err("not a number");
    assert!(error.detail.len() < 300, "{} bytes", error.detail.len());
}

#[test]
fn fractions_are_read_by_thousandths_and_capped() {
    for (value, expected) in [
        ("1", 1000),
        ("2.625", 2625),
        ("1.33339", 1333),
        ("0.5", 500),
        ("0", 100),
        ("-3", 100),
        ("8.0001", 8000),
        ("99999999999", 8000),
    ] {
        assert_eq!(parsed(&[("dpr", value)]).sizing.dpr, expected, "{value}");
    }
    for value in ["", ".", "1.", ".5", "+1", "1,5", "1e1", "1.5x", "--1", "2x"] {
        let error = parse(&[("dpr", value)]).expect_err("it is no number");
        assert!(error.detail.contains("from 0.1 to 8"), "{}", error.detail);
    }
}

#[test]
fn goals_are_read_and_exclude_each_other_and_a_quality() {
    let max_bytes = |bytes, is_best_effort| {
        Some(Goal::MaxBytes {
            bytes,
            is_best_effort,
        })
    };
    for (pairs, expected) in [
        (&[("max_bytes", "100000")][..], max_bytes(100_000, false)),
        (&[("max_bytes", "100k")], max_bytes(100_000, false)),
        (&[("max_bytes", "2K")], max_bytes(2000, false)),
        (&[("max_bytes", "3M")], max_bytes(3_000_000, false)),
        (&[("max_bytes", "500kB")], max_bytes(500_000, false)),
        (&[("max_bytes", "3KiB")], max_bytes(3072, false)),
        (&[("max_bytes", "1mib")], max_bytes(1 << 20, false)),
        (&[("max_bytes", "1G")], max_bytes(1_000_000_000, false)),
        (&[("max_bytes", "1GiB")], max_bytes(1 << 30, false)),
        (&[("max_bytes", "700B")], max_bytes(700, false)),
        (&[("max_bytes", "0")], max_bytes(1, false)),
        (&[("max_bytes", "-7k")], max_bytes(1, false)),
        (
            &[("max_bytes", "99999999999M")],
            max_bytes(i32::MAX as u64, false),
        ),
        (
            &[("best_effort", "true"), ("max_bytes", "5")],
            max_bytes(5, true),
        ),
        (&[("best_effort", "true")], None),
        (&[("target", "80")], Some(Goal::Score(80))),
        (&[("target", "29")], Some(Goal::Score(30))),
        (&[("target", "1000")], Some(Goal::Score(95))),
    ] {
        assert_eq!(parsed(pairs).goal, expected, "{pairs:?}");
    }
    for pairs in [
        [("quality", "85"), ("max_bytes", "1k")],
        [("target", "70"), ("quality", "85")],
        [("target", "70"), ("max_bytes", "1k")],
    ] {
        let error = parse(&pairs).expect_err("they exclude each other");
        assert_eq!(error.code, "invalid_parameter");
        for (name, _) in pairs {
            assert!(error.detail.contains(name), "{}", error.detail);
        }
    }
    for (name, value) in [
        ("max_bytes", "k"),
        ("max_bytes", "1.5k"),
        ("max_bytes", "1kk"),
        ("max_bytes", "10 k"),
        ("max_bytes", "1T"),
        ("max_bytes", "1Ki"),
        ("max_bytes", ""),
        ("target", "70.5"),
        ("target", "70k"),
        ("target", "high"),
        ("best_effort", "yes"),
    ] {
        let error = parse(&[(name, value)]).expect_err("it is not allowed");
        assert_eq!((error.name, error.code), (name, "invalid_parameter"));
    }
}

#[test]
fn a_part_has_pixels_and_four_numbers() {
    for part in ["0,0,0,5", "0,0,5,0", "1,2,3", "1,2,3,4,5", "1,2,-3,4"] {
        let error = parse(&[("crop", part)]).expect_err("it is no part of a picture");
        assert_eq!((error.name, error.code), ("crop", "invalid_parameter"));
    }
}

#[test]
fn a_side_of_0_is_as_if_absent() {
    assert_eq!(parsed(&[("width", "0"), ("height", "000")]), parsed(&[]));
    assert_eq!(
        parsed(&[("width", "400"), ("height", "0")]),
        parsed(&[("width", "400")])
    );
    assert_eq!(
        parsed(&[("height", "0"), ("if_larger", "original")]).sizing,
        Sizing::default()
    );
    assert_eq!(parsed(&[("width", "-5")]).sizing.width, Some(1), "capped");
    let preset = super::super::Preset::parse("width=800\nheight=0").expect("a valid preset");
    let completed = |given: &[(&str, &str)]| preset.complete(given.iter().copied());
    assert_eq!(completed(&[]), Ok(parsed(&[("width", "800")])));
    assert_eq!(completed(&[("width", "0")]), Ok(parsed(&[])));
}

#[test]
fn numbers_are_known_to_be_in_their_range_before_they_are_capped() {
    for (name, within, beyond) in [
        (
            "quality",
            &["0", "100", "-0"][..],
            &["-1", "101", "99999999999"][..],
        ),
        ("max_bytes", &["1", "2G", "1k"], &["0", "-1k"]),
        ("dpr", &["0.1", "8"], &["0.05", "8.1", "-1"]),
        (
            "watermark_size",
            &["8", "200", "0.1%", "100%"],
            &["7", "201", "0%", "101%"],
        ),
        ("watermark_scale", &["1", "100%"], &["0", "101%"]),
        ("fit", &["cover"], &[]),
    ] {
        let row = PARAMETERS.iter().find(|row| row.name == name);
        let value = row.expect("a parameter").value;
        for text in within {
            assert!(value.is_in_range(text), "{name} {text}");
        }
        for text in beyond {
            assert!(!value.is_in_range(text), "{name} {text}");
        }
    }
}
