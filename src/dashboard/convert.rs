//! The page that converts pictures, with every parameter. Without its script it is a form that
//! converts one picture and downloads it.

use super::MODULE;
use super::context::SignedIn;
use super::convert_fields::fields;
use super::document::{Viewer, document_with};
use super::outcome::Outcome;
use super::paths;
use crate::store::{ApiToken, StoreError, TokenNumber};
use maud::{Markup, html};
use towebp_pipeline::conversion::Preset;

/// The languages of the snippets: the values that the script knows them by, and their names.
const LANGUAGES: [(&str, &str); 5] = [
    ("curl", "curl"),
    ("python", "Python"),
    ("node", "Node.js"),
    ("php", "PHP"),
    ("go", "Go"),
];

/// Settings by the name of what they are for. The script reads them from the address, as those of
/// any other link to the page. The account's own presets are those of its tokens.
const PRESETS: [(&str, &str); 4] = [
    ("Web photo", "quality=80"),
    ("Screenshot", "near_lossless=60"),
    ("Thumbnail", "width=320&height=320&fit=cover"),
    ("Under 100 kB", "max_bytes=100k"),
];

/// The page that converts.
pub fn convert(context: &SignedIn<'_>) -> Result<Outcome, StoreError> {
    let token = context.store.token(context.session.account.id)?;
    let tokens = context.store.tokens(context.session.account.id)?;
    let default = tokens
        .iter()
        .find(|usage| usage.token.number == TokenNumber::DEFAULT);
    let preset = default.map_or("", |usage| &usage.token.settings.preset);
    let own: Vec<_> = tokens
        .iter()
        .map(|usage| &usage.token)
        .filter(|token| token.number != TokenNumber::DEFAULT && !token.settings.preset.is_empty())
        .collect();
    let module = MODULE.map(|_| paths::BROWSER);
    let content = html! {
        link rel="stylesheet" href=(paths::CONVERT_STYLE);
        div.intro {
            h1 { "Convert" }
            p.hint {
                @if module.is_some() {
                    "Each result counts as one conversion. Previews in your browser: not counted against your quota."
                } @else {
                    "To WebP, with every setting. Each result counts as one conversion."
                }
            }
        }
        div.convert #convert data-url=(context.base_url) data-max-body=(context.max_body) data-webp[context.accepts_webp]
            data-tiff[context.accepts_tiff]
            data-module=[module] data-preset=[module.map(|_| preset)] {
            div.work {
                (drop_card(context))
                (compare_card())
                (rows_card())
            }
            (settings_form(preset, &own))
        }
        (snippet_card())
        div.card #bar hidden {
            p.figures {
                span #shown {}
                strong #sum {}
            }
            div.tools {
                button.secondary #folder type="button" hidden disabled { "Save into a folder" }
                button #zip type="button" disabled { "Download all" }
            }
        }
        p.visually-hidden #announce role="status" {}
    };
    let viewer = Viewer::of(&context.session);
    let markup = document_with(paths::CONVERT_SCRIPT, "Convert", viewer, &content);
    Ok(Outcome::page_that_converts(markup, Some(token)))
}

/// Where pictures are chosen. The script makes it take many.
fn drop_card(context: &SignedIn<'_>) -> Markup {
    let accepted = [context.accepts_webp, context.accepts_tiff];
    let formats = match accepted {
        [false, false] => "PNG, JPEG, GIF or BMP.",
        [true, false] => "PNG, JPEG, GIF, BMP or WebP.",
        [false, true] => "PNG, JPEG, GIF, BMP or TIFF.",
        [true, true] => "PNG, JPEG, GIF, BMP, WebP or TIFF.",
    };
    html! {
        section.card.drop #drop {
            label for="files" { "Pictures to convert" }
            input #files type="file" name="file" form="settings" accept=((context.picture_types)(accepted)) required;
            p.hint {
                span #drop-hint hidden { "or drop them anywhere here, or paste them. " }
                (formats)
            }
        }
    }
}

/// The settings: a form that a browser without the script sends by itself. The token is needed
/// before the body, so that it cannot be a field; the page's cookie has it.
fn settings_form(preset: &str, own: &[&ApiToken]) -> Markup {
    html! {
        form.card #settings method="post" action=(paths::CONVERT) enctype="multipart/form-data" {
            div.title {
                h2 { "Settings" }
                button.quiet #reset type="reset" { "Reset" }
            }
            input type="hidden" name="download" value="converted";
            @if !preset.is_empty() {
                p.hint #preset {
                    "At first as the preset of the token " code { (TokenNumber::DEFAULT_NAME) } " says: "
                    @for line in preset.lines() { code { (line) } " " }
                    a href=(paths::TOKENS) { "Change it" }
                }
            }
            label.check #own-choice hidden {
                input #own type="checkbox";
                span { "Only for " span #own-name {} }
            }
            p.presets #presets hidden {
                @for (name, settings) in PRESETS { a href={ "#" (settings) } { (name) } }
                @for token in own {
                    @let preset = Preset::parse_stored(&token.settings.preset).unwrap_or_default();
                    a href={ "#" (preset.query()) } title="The preset of this token" { (token.settings.name) }
                }
            }
            p.hint #save-preset hidden {
                a href=(paths::TOKENS) target="_blank" { "Save as a preset" }
                ", with a token of its own"
            }
            (fields(&Preset::parse_stored(preset).unwrap_or_default()))
            p.submit {
                button #apply type="submit" { "Convert" }
            }
        }
    }
}

/// The compared picture before and after.
fn compare_card() -> Markup {
    html! {
        section.card #compare hidden aria-labelledby="compare-title" {
            div.title {
                h2 #compare-title { "Compare" }
                button.secondary #difference type="button" aria-pressed="false" disabled { "Difference" }
                div.zooms role="group" aria-label="Zoom" {
                    @for (zoom, name) in [("fit", "Fit"), ("1", "100 %"), ("2", "200 %"), ("4", "400 %")] {
                        button.secondary type="button" data-zoom=(zoom) aria-pressed=(zoom == "fit") { (name) }
                    }
                }
            }
            div.labels {
                p.badge #before-label {}
                p.working #working hidden { "Converting …" }
                p.badge #after-label {}
            }
            div.stage #stage tabindex="0" role="group" aria-label="The picture; arrow keys move it if it is zoomed, D shows what changed" {
                div.layer { img #before alt="The picture before" draggable="false"; }
                div.layer #after-layer { img #after alt="The picture after" draggable="false"; }
                div.divider #divider aria-hidden="true" {}
            }
            label.visually-hidden for="slider" { "How much of the picture before is shown" }
            input #slider type="range" min="0" max="100" value="50" step="1";
            p.hint #difference-note role="status" hidden {}
            p.alert #compare-problem hidden {}
            div #placeholder hidden {
                div.title {
                    h3 { "Placeholder" }
                    button.copy.secondary type="button" data-copy="placeholder-tag" hidden { "Copy" }
                }
                pre tabindex="0" { code #placeholder-tag {} }
            }
        }
    }
}

/// The pictures, each with its result: a strip below the compared one, or a list where there is no
/// room for both.
fn rows_card() -> Markup {
    html! {
        section.card #results hidden aria-labelledby="results-title" {
            div.title {
                h2 #results-title { "Pictures" }
                p.hint.keys { kbd { "Enter" } " compares, arrows move, " kbd { "S" } " downloads, " kbd { "Delete" } " removes" }
                div.tools {
                    button.secondary #retry-all type="button" hidden { "Try failed ones again" }
                    button.secondary #cancel-all type="button" hidden { "Cancel all" }
                    button.secondary #clear type="button" { "Clear the list" }
                }
            }
            p.alert #hold hidden {}
            ol #rows {}
            template #row-template { (row()) }
        }
    }
}

/// A picture, which the script fills in.
fn row() -> Markup {
    html! {
        li.row {
            button.thumb type="button" { canvas width="96" height="96" {} }
            div.what {
                span.name {}
                span.detail {}
                progress max="1" value="0" aria-label="Progress" {}
            }
            div.figures {
                span.bytes {}
                strong.saved {}
            }
            div.tools {
                button.save.secondary type="button" { "Download" }
                button.retry.secondary type="button" { "Try again" }
                button.cancel.secondary type="button" { "Cancel" }
                button.remove.quiet type="button" { "Remove" }
            }
        }
    }
}

/// The same conversion as a program. The script writes it.
fn snippet_card() -> Markup {
    html! {
        section.card #copy-as hidden {
            div.title {
                h2 { "Copy as" }
                div.tools {
                    label.visually-hidden for="snippet-language" { "Language" }
                    select #snippet-language {
                        @for (value, name) in LANGUAGES { option value=(value) { (name) } }
                    }
                    button.copy.secondary type="button" data-copy="snippet" hidden { "Copy" }
                }
            }
            pre tabindex="0" { code #snippet {} }
            p.hint {
                "With exactly these settings. The token comes from the environment: set "
                code { "TOWEBP_TOKEN" } " to one of your " a href=(paths::TOKENS) { "tokens" } "."
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_parameters_that_requests_may_have() {
        for (name, settings) in PRESETS {
            let preset = Preset::parse(&settings.replace('&', "\n"));
            assert!(preset.is_ok(), "{name}: {preset:?}");
        }
    }
}
