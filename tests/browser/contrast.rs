//! Contrasts that axe-core does not compute, in both themes: borders of fields and buttons,
//! placeholders and disabled buttons (WCAG 2.2, 1.4.3 and 1.4.11). And the two media that have
//! colors of their own: forced colors, and paper.

use crate::page::{Browser, Theme};
use crate::support::Server;
use crate::support::picture::Picture;
use crate::sweep;
use crate::visitor;
use serde_json::json;

/// Lines about all controls of the page whose contrast is too low.
const TOO_LOW: &str = "
const parse = (color) => {
    const [red, green, blue, alpha = 1] = color.match(/[\\d.]+/g).map(Number);
    return { rgb: [red, green, blue], alpha };
};
const over = (top, below) => top.rgb.map((value, at) => value * top.alpha + below[at] * (1 - top.alpha));
const background = (element) => {
    if (!element) return [255, 255, 255];
    const own = parse(getComputedStyle(element).backgroundColor);
    return own.alpha === 1 ? own.rgb : over(own, background(element.parentElement));
};
const luminance = (rgb) => {
    const [red, green, blue] = rgb.map((value) => value / 255)
        .map((value) => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
};
const contrast = (one, other) => {
    const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
};
const faults = [];
const check = (element, what, color, on, wanted) => {
    const opacity = Number(getComputedStyle(element).opacity);
    const top = parse(color);
    const found = contrast(over({ ...top, alpha: top.alpha * opacity }, on), on);
    if (found < wanted) faults.push(`${what} of ${element.outerHTML.slice(0, 100)}: ${found.toFixed(2)}:1`);
};
const controls = document.querySelectorAll(
    'input:not([type=hidden], [type=checkbox], [type=range], [type=file]), select, textarea, button, .drop, .presets a');
for (const element of controls) {
    if (!element.checkVisibility()) continue;
    const style = getComputedStyle(element), around = background(element.parentElement);
    const isFilled = contrast(background(element), around) >= 3;
    if (parseFloat(style.borderTopWidth) && !isFilled) check(element, 'border', style.borderTopColor, around, 3);
    if (element.placeholder) {
        check(element, 'placeholder', getComputedStyle(element, '::placeholder').color, background(element), 4.5);
    }
    if (element.localName === 'button') check(element, 'text', style.color, background(element), 4.5);
}
return faults;";

/// Shows everything that can be shown.
const OPEN: &str = "for (const one of document.querySelectorAll('details')) one.open = true";

#[test]
fn controls_are_seen_in_both_themes() {
    let server = Server::start();
    let Some(browser) = Browser::start(&server) else {
        return;
    };
    for path in ["/signin", "/signup"] {
        check(&browser, path);
    }
    convert(&server, &visitor::sign_up(&browser));
    for path in [
        "/dashboard",
        "/dashboard/convert",
        "/tokens",
        "/account",
        "/sessions",
        "/docs/api",
    ] {
        check(&browser, path);
    }
    browser.run(
        "document.body.innerHTML = '<main class=card><button disabled>Save</button><input placeholder=x></main>'",
        &[],
    );
    assert_eq!(browser.run(TOO_LOW, &[]), json!([]));
    let faint = "const style = document.querySelector('input').style; \
         style.borderColor = '#888'; style.background = '#777'; document.querySelector('main').style.background = '#777'";
    browser.run(faint, &[]);
    let found = browser.run(TOO_LOW, &[]);
    assert!(
        found.as_array().is_some_and(|found| found.len() > 1),
        "nothing is found: {found}"
    );
}

#[track_caller]
fn check(browser: &Browser, path: &str) {
    browser.open(path);
    browser.run(OPEN, &[]);
    if path == "/dashboard/convert" {
        browser.run("document.querySelector('#results').hidden = false; document.querySelector('#apply').disabled = true", &[]);
    }
    for theme in [Theme::Light, Theme::Dark] {
        browser.show_as(1280, theme);
        let faults = browser.run(TOO_LOW, &[]);
        assert_eq!(faults, json!([]), "{path}, {theme:?}");
    }
}

fn convert(server: &Server, token: &str) {
    let answer = server
        .request("POST", "/convert")
        .header("Authorization", &format!("Bearer {token}"))
        .header("Content-Type", "image/png")
        .body(Picture::waves(60, 40).png())
        .send();
    assert_eq!(answer.status, 200, "{}", answer.text());
}

#[test]
fn forced_colors_and_paper_have_a_style() {
    let server = Server::start_with(&["--monthly-quota", "10"]);
    let Some(browser) = Browser::start(&server) else {
        return;
    };
    convert(&server, &visitor::sign_up(&browser));
    browser.open("/dashboard");
    let color = |css: &str, property: &str| {
        let script = "return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]]";
        let value = browser.run(script, &[json!(css), json!(property)]);
        value.as_str().expect("a text").to_owned()
    };
    let system = |name: &str| {
        let script = "const probe = document.createElement('p'); probe.style.cssText = 'forced-color-adjust: none'; \
             probe.style.color = arguments[0]; document.body.append(probe); \
             const { color } = getComputedStyle(probe); probe.remove(); return color";
        browser
            .run(script, &[json!(name)])
            .as_str()
            .expect("a color")
            .to_owned()
    };
    for theme in [Theme::Light, Theme::Dark] {
        browser.show_in("screen", ("forced-colors", "active"), theme);
        assert_eq!(color("#chart rect.out", "fill"), system("Highlight"));
        assert_eq!(color(".plot path.grid", "stroke"), system("GrayText"));
        assert_eq!(
            color("nav [aria-current]", "backgroundColor"),
            system("Highlight")
        );
        assert_eq!(
            color(".filter .secondary", "borderTopColor"),
            system("CanvasText")
        );
        browser.screenshot(&format!("dashboard-forced-colors-{theme:?}"));
    }
    browser.show_in("print", ("forced-colors", "none"), Theme::Dark);
    for css in [".who", ".links", ".presets", ".filter", "footer"] {
        assert!(!browser.is_shown(css), "{css} is printed");
    }
    assert!(browser.is_shown("#totals") && browser.is_shown("#history table"));
    assert_eq!(color("body", "backgroundColor"), "rgb(255, 255, 255)");
    assert_eq!(color("h1", "color"), "rgb(0, 0, 0)");
    browser.screenshot("dashboard-print");
    browser.show_in("", ("forced-colors", "none"), Theme::Light);
    assert_eq!(browser.faults_on_console(), [""; 0]);
    sweep::look_at_shown(&browser, "dashboard-one");
}
