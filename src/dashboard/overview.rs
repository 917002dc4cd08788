//! The dashboard: token, totals and history of the signed-in account.

use super::layout::{Viewer, command, curl_line, document};
use super::own_account::account_card;
use super::{Form, Outcome, Page, Verdict, Visit, go, page};
use crate::store::{
    AccountId, Session, StoreError, UsageEntry, UsagePage, UsageTotals, WatermarkKind,
};
use maud::{Markup, html};
use std::time::SystemTime;

/// Rows of the history on one page.
const ROWS: usize = 25;

/// The dashboard, with the history from before entry `before`, or from its newest end.
///
/// # Errors
/// When the store fails.
pub fn overview(visit: &Visit<'_>, before: Option<u64>) -> Result<Outcome, StoreError> {
    let Some(session) = visit.session()? else {
        return Ok(go("/signin"));
    };
    let token = visit.store.token(&session.account);
    let totals = visit.store.usage_totals(session.account.id)?;
    let history = visit.store.usage(session.account.id, before, ROWS)?;
    let content = html! {
        h1 { "Dashboard" }
        (totals_row(&totals))
        (quota_line(visit, session.account.id)?)
        (token_card(visit, &token, &session.csrf))
        (try_card())
        (history_card(&history, before.is_some()))
        (sessions_card(&session.csrf))
        (account_card(&session, &totals))
    };
    let viewer = Viewer::Account {
        email: &session.account.email,
        csrf: &session.csrf,
    };
    Ok(page(document("Dashboard", viewer, &content)))
}

/// Replaces the token; the old one is refused from now on.
///
/// # Errors
/// When the store fails.
pub fn rotate_token(visit: &Visit<'_>, form: &Form) -> Result<Outcome, StoreError> {
    let Some(session) = visit.session()? else {
        return Ok(go("/signin"));
    };
    if !is_from_session(form, &session) {
        return Ok(stale_form(&session));
    }
    visit.store.rotate_token(session.account.id)?;
    Ok(go("/dashboard"))
}

/// Whether the form carries the session's secret, and so comes from a page that was made for this session.
pub fn is_from_session(form: &Form, session: &Session) -> bool {
    session.csrf_matches(form.field("csrf"))
}

/// What a form without the session's secret gets.
pub fn stale_form(session: &Session) -> Outcome {
    let content = html! {
        section.card.narrow {
            h1 { "Please try again" }
            p { "The form was not made for this session, so nothing was changed." }
            p { a href="/dashboard" { "Back to the dashboard" } }
        }
    };
    let viewer = Viewer::Account {
        email: &session.account.email,
        csrf: &session.csrf,
    };
    Outcome::Page(Page {
        markup: document("Please try again", viewer, &content),
        verdict: Verdict::Forbidden,
    })
}

fn totals_row(totals: &UsageTotals) -> Markup {
    let saved = saved_percent(totals.input_bytes, totals.output_bytes);
    html! {
        dl.totals #totals {
            div { dt { "Conversions" } dd { (totals.conversions) } }
            div { dt { "Bytes in" } dd { (size(totals.input_bytes)) } }
            div { dt { "Bytes out" } dd { (size(totals.output_bytes)) } }
            div { dt { "Saved" } dd { (saved) } }
        }
    }
}

/// Where there is a quota: how much of it is used, and when it begins anew.
fn quota_line(visit: &Visit<'_>, account: AccountId) -> Result<Markup, StoreError> {
    let Some(quota) = visit.monthly_quota else {
        return Ok(html! {});
    };
    let month = visit.store.usage_in_month(account, SystemTime::now())?;
    let next = minute(month.end);
    let day = next.split_once(' ').map_or(next.as_str(), |(day, _)| day);
    Ok(html! {
        p #quota {
            "This month: " (month.conversions) " of " (quota) " conversions. "
            "The next month begins on " (day) " (UTC)."
            @if month.conversions >= quota.get() { " Until then, conversions are refused." }
        }
    })
}

fn token_card(visit: &Visit<'_>, token: &str, csrf: &str) -> Markup {
    html! {
        section.card {
            h2 { "API token" }
            label for="token" { "Keep it to yourself: whoever has it converts in your name." }
            div.field {
                input #token type="text" value=(token) readonly spellcheck="false" autocomplete="off";
                button.copy type="button" data-copy="token" hidden { "Copy" }
            }
            (command(&html! { h3 { "Ready to paste" } }, "curl", &curl_line(visit.base_url, token)))
            details {
                summary { "Replace the token" }
                form method="post" action="/token/rotate" {
                    input type="hidden" name="csrf" value=(csrf);
                    p {
                        "A new token is made, and the old one is refused at once, wherever it is in use. There is \
                         no way back."
                    }
                    label.check { input type="checkbox" required; "I have understood this" }
                    button.danger type="submit" { "Replace the token now" }
                }
            }
        }
    }
}

/// Shown by the script, which it needs.
fn try_card() -> Markup {
    html! {
        section.card #try hidden {
            h2 { "Try it" }
            form #try-form {
                div.row {
                    div {
                        label for="try-file" { "Picture" }
                        input #try-file type="file" accept="image/png,image/jpeg,image/gif,image/bmp,image/x-ms-bmp,.bmp" required;
                    }
                    div {
                        label for="try-quality" { "Quality" }
                        input #try-quality type="number" min="0" max="100" value="85";
                    }
                    div {
                        label for="try-effort" { "Effort" }
                        select #try-effort {
                            option value="low" { "low" }
                            option value="medium" selected { "medium" }
                            option value="high" { "high" }
                        }
                    }
                    div {
                        label for="try-watermark" { "Watermark text (optional)" }
                        input #try-watermark type="text" maxlength="200";
                    }
                    button type="submit" { "Convert" }
                }
            }
            p #try-result role="status" {}
            a #try-link download="picture.webp" hidden { img #try-image alt="The converted picture"; }
        }
    }
}

fn history_card(history: &UsagePage, is_later_page: bool) -> Markup {
    html! {
        section.card #history {
            div.title {
                h2 { "Usage history" }
                a href="/api/usage.csv" { "Get as CSV" }
            }
            @if history.entries.is_empty() {
                p.hint { @if is_later_page { "There are no older conversions." } @else { "No conversions yet." } }
            } @else {
                div.scroll tabindex="0" role="region" aria-label="Usage history" {
                    table.history {
                        thead {
                            tr {
                                th.number { "No." } th { "Time (UTC)" } th { "Format" } th.number { "In" }
                                th.number { "Out" } th.number { "Saved" } th.number { "Pixels" }
                                th.number { "Quality" } th { "Watermark" } th.number { "Took" }
                            }
                        }
                        tbody { @for (id, entry) in &history.entries { (row(*id, entry)) } }
                    }
                }
            }
            p.paging {
                @if is_later_page { a href="/dashboard#history" { "Newest" } }
                @if let Some(before) = history.next_before {
                    a href={ "/dashboard?before=" (before) "#history" } { "Older" }
                }
            }
        }
    }
}

fn sessions_card(csrf: &str) -> Markup {
    html! {
        section.card {
            h2 { "Sessions" }
            p { "A browser stays signed in for up to 30 days. This ends it for all browsers, with this one." }
            form method="post" action="/signout/everywhere" {
                input type="hidden" name="csrf" value=(csrf);
                button.secondary type="submit" { "Sign out everywhere" }
            }
        }
    }
}

/// Where the page is narrow, each cell stands under its label instead of the column's head.
fn row(id: u64, entry: &UsageEntry) -> Markup {
    html! {
        tr {
            td.number data-label="No." { (id) }
            td data-label="Time (UTC)" { (minute(entry.time)) }
            td data-label="Format" { (entry.format) }
            td.number data-label="In" { (size(entry.input_bytes)) }
            td.number data-label="Out" { (size(entry.output_bytes)) }
            td.number data-label="Saved" { (saved_percent(entry.input_bytes, entry.output_bytes)) }
            td.number data-label="Pixels" { (entry.width) " × " (entry.height) }
            td.number data-label="Quality" { (entry.quality) }
            td data-label="Watermark" {
                @if entry.watermark != WatermarkKind::None { (entry.watermark.name()) } @else { "–" }
            }
            td.number data-label="Took" { (entry.milliseconds) " ms" }
        }
    }
}

/// `2026-11-21 03:15:00`
fn minute(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time)
        .to_string()
        .replace('T', " ")
        .trim_end_matches('Z')
        .to_owned()
}

/// Bytes in the largest unit (of 1000) that leaves at least one before the point.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["kB", "MB", "GB", "TB", "PB"];
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let mut amount = bytes as f64 / 1000.0;
    let mut unit = 0;
    // 999.95 would be shown as 1000.0.
    while amount >= 999.95 && unit + 1 < UNITS.len() {
        amount /= 1000.0;
        unit += 1;
    }
    format!("{amount:.1} {}", UNITS[unit])
}

/// How much smaller the output is; below zero if it is larger.
fn saved_percent(input: u64, output: u64) -> String {
    if input == 0 {
        return "–".to_owned();
    }
    let saved = 100.0 - output as f64 / input as f64 * 100.0;
    format!("{} %", saved.round() as i64).replace('-', "−")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Account;

    #[test]
    fn sizes_are_short() {
        let cases = [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.0 kB"),
            (999_949, "999.9 kB"),
            (999_950, "1.0 MB"),
            (1_234_567_890, "1.2 GB"),
            (u64::MAX, "18446.7 PB"),
        ];
        for (bytes, expected) in cases {
            assert_eq!(size(bytes), expected, "{bytes}");
        }
    }

    #[test]
    fn savings_may_be_losses() {
        assert_eq!(saved_percent(1000, 250), "75 %");
        assert_eq!(saved_percent(1000, 1500), "−50 %");
        assert_eq!(saved_percent(0, 0), "–");
    }

    #[test]
    fn the_cells_of_a_row_are_labelled_as_their_columns() {
        let entry = UsageEntry {
            time: SystemTime::UNIX_EPOCH,
            format: "png".to_owned(),
            input_bytes: 2,
            output_bytes: 1,
            width: 1,
            height: 1,
            quality: 85,
            watermark: WatermarkKind::None,
            milliseconds: 1,
        };
        let history = UsagePage {
            entries: vec![(1, entry)],
            next_before: None,
        };
        let text = history_card(&history, false).into_string();
        let between = |start: &str, end: char| -> Vec<String> {
            let parts = text.split(start).skip(1);
            parts
                .filter_map(|part| Some(part.split_once(end)?.0.to_owned()))
                .collect()
        };
        let heads = between("<th", '<');
        let heads: Vec<&str> = heads
            .iter()
            .filter_map(|head| head.split_once('>'))
            .map(|(_, head)| head)
            .collect();
        let heads: Vec<&str> = heads.into_iter().filter(|head| !head.is_empty()).collect();
        assert_eq!(between("data-label=\"", '"'), heads, "{text}");
        assert_eq!(heads.len(), 10, "{text}");
    }

    #[test]
    fn the_script_brings_up_to_date_what_a_conversion_changes() {
        for id in ["totals", "quota", "history"] {
            let name = format!("\"{id}\"");
            assert!(crate::dashboard::SCRIPT.contains(&name), "{id}");
            assert!(crate::dashboard::STYLE.contains(".history"), "{id}");
        }
    }

    #[test]
    fn a_form_must_carry_the_session_s_own_secret() {
        let account = Account {
            id: AccountId(1),
            email: "owner@example.org".to_owned(),
            created: SystemTime::UNIX_EPOCH,
            token_generation: 0,
            has_password: true,
        };
        let session = Session {
            account,
            csrf: "secret".to_owned(),
        };
        let form = |value: &str| Form::new(vec![("csrf".to_owned(), value.to_owned())]);
        assert!(is_from_session(&form("secret"), &session));
        assert!(!is_from_session(&form("secre"), &session));
        assert!(!is_from_session(&form(""), &session));
        assert!(!is_from_session(&Form::new(Vec::new()), &session));
    }
}
