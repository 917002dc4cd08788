//! The dashboard: token, totals and history of the signed-in account.

use super::account::account_card;
use super::context::PageContext;
use super::document::{Viewer, command, curl_command, document};
use super::outcome::Outcome;
use super::paths;
use super::sessions::sessions_card;
use super::tokens::rotation_form;
use super::units::{date_and_time, size};
use crate::store::{
    AccountId, Limits, Session, StoreError, TokenNumber, TokenUsage, UsageEntry, UsagePage,
    UsageTotals, WatermarkKind, token_name,
};
use maud::{Markup, html};
use std::time::SystemTime;

/// Entries of the history on one page.
const ROWS: usize = 25;

/// The dashboard, with the newest entries of the history, or those older than the entry `before`.
///
/// # Errors
/// The store failed.
pub fn overview(context: &PageContext<'_>, before: Option<u64>) -> Result<Outcome, StoreError> {
    let Some(session) = context.session()? else {
        return Ok(Outcome::redirect(paths::SIGN_IN));
    };
    let token = context.store.token(session.account.id)?;
    let totals = context.store.usage_totals(session.account.id)?;
    let history = context.store.usage(session.account.id, before, ROWS)?;
    let tokens = context.store.tokens(session.account.id)?;
    let content = html! {
        h1 { "Dashboard" }
        (totals_row(&totals))
        (quota_line(context, session.account.id)?)
        (token_card(context, &token, &session))
        (try_card())
        (history_card(&history, &tokens, before.is_some()))
        (sessions_card(&session))
        (account_card(&session, &totals))
    };
    Ok(Outcome::page(document(
        "Dashboard",
        Viewer::of(&session),
        &content,
    )))
}

fn totals_row(totals: &UsageTotals) -> Markup {
    let saved = saved(totals.saved_percent());
    html! {
        dl.totals #totals {
            div { dt { "Conversions" } dd { (totals.conversions) } }
            div { dt { "Bytes in" } dd { (size(totals.input_bytes)) } }
            div { dt { "Bytes out" } dd { (size(totals.output_bytes)) } }
            div { dt { "Saved" } dd { (saved) } }
        }
    }
}

/// How much of the monthly quota is used, and when the next month begins; empty without a quota.
fn quota_line(context: &PageContext<'_>, account: AccountId) -> Result<Markup, StoreError> {
    let server = Limits {
        monthly: context.monthly_quota,
        ..Limits::default()
    };
    let restrictions = context.store.restrictions(account)?.unwrap_or_default();
    let Some(quota) = restrictions.limits(server).monthly else {
        return Ok(html! {});
    };
    let month = context
        .store
        .usage_in_month(account, None, SystemTime::now())?;
    let next = date_and_time(month.end);
    let day = next.split_once(' ').map_or(next.as_str(), |(day, _)| day);
    Ok(html! {
        p #quota {
            "This month: " (month.conversions) " of " (quota) " conversions. "
            "The next month begins on " (day) " (UTC)."
            @if month.conversions >= quota.get() { " Until then, conversions are refused." }
        }
    })
}

fn token_card(context: &PageContext<'_>, token: &str, session: &Session) -> Markup {
    let curl = curl_command(context.base_url, token);
    html! {
        section.card {
            h2 { "API token" }
            label for="token" { "Keep it to yourself: whoever has it converts in your name." }
            div.field {
                input #token type="text" value=(token) readonly spellcheck="false"
                    autocomplete="off";
                button.copy type="button" data-copy="token" hidden { "Copy" }
            }
            (command(&html! { h3 { "Ready to paste" } }, "curl", &curl))
            details {
                summary { "Replace the token" }
                (rotation_form(session, TokenNumber::DEFAULT))
            }
            p.hint {
                a href=(paths::TOKENS) { "More tokens" }
                ": one for each place that converts, with limits and parameters of its own."
            }
        }
    }
}

/// The try-it form. It needs the script, which shows it.
fn try_card() -> Markup {
    html! {
        section.card #try hidden {
            h2 { "Try it" }
            form #try-form {
                div.row {
                    div {
                        label for="try-file" { "Picture" }
                        input #try-file type="file"
                            accept="image/png,image/jpeg,image/gif,image/bmp,image/x-ms-bmp,.bmp"
                            required;
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
                            option value="max" { "max" }
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
            a #try-link download="picture.webp" hidden {
                img #try-image alt="The converted picture";
            }
        }
    }
}

/// The history. Whoever has had one token only does not see which one it was.
fn history_card(history: &UsagePage, tokens: &[TokenUsage], is_later_page: bool) -> Markup {
    let tokens = (tokens.len() > 1).then_some(tokens);
    html! {
        section.card #history {
            div.title {
                h2 { "Usage history" }
                a href=(paths::USAGE_CSV) { "Get as CSV" }
            }
            @if history.entries.is_empty() {
                p.hint {
                    @if is_later_page { "There are no older conversions." }
                    @else { "No conversions yet." }
                }
            } @else {
                div.scroll tabindex="0" role="region" aria-label="Usage history" {
                    table.history {
                        thead {
                            tr {
                                th.number { "No." } th { "Time (UTC)" } th { "Format" }
                                th.number { "In" } th.number { "Out" } th.number { "Saved" }
                                th.number { "Pixels" } th.number { "Quality" } th { "Watermark" } th.number { "Took" }
                                @if tokens.is_some() { th { "Token" } }
                            }
                        }
                        tbody { @for (id, entry) in &history.entries { (row(*id, entry, tokens)) } }
                    }
                }
            }
            p.paging {
                @if is_later_page { a href={ (paths::DASHBOARD) "#history" } { "Newest" } }
                @if let Some(before) = history.next_before {
                    a href={ (paths::DASHBOARD) "?before=" (before) "#history" } { "Older" }
                }
            }
        }
    }
}

/// One row of the history. On narrow screens each cell shows its own label in place of the
/// column's head.
fn row(id: u64, entry: &UsageEntry, tokens: Option<&[TokenUsage]>) -> Markup {
    html! {
        tr {
            td.number data-label="No." { (id) }
            td data-label="Time (UTC)" { (date_and_time(entry.time)) }
            td data-label="Format" { (entry.format) }
            td.number data-label="In" { (size(entry.input_bytes)) }
            td.number data-label="Out" { (size(entry.output_bytes)) }
            td.number data-label="Saved" { (saved(entry.saved_percent())) }
            td.number data-label="Pixels" { (entry.width) " × " (entry.height) }
            td.number data-label="Quality" { (entry.quality) }
            td data-label="Watermark" {
                @if entry.watermark == WatermarkKind::None { "–" }
                @else { (entry.watermark.name()) }
            }
            td.number data-label="Took" { (entry.milliseconds) " ms" }
            @if let Some(tokens) = tokens {
                td data-label="Token" { (token_name(tokens, entry.token)) }
            }
        }
    }
}

/// A percentage, with a true minus sign if it is negative.
fn saved(percent: Option<i64>) -> String {
    match percent {
        Some(percent) => format!("{percent} %").replace('-', "−"),
        None => "–".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn savings_may_be_losses() {
        assert_eq!(saved(Some(75)), "75 %");
        assert_eq!(saved(Some(-50)), "−50 %");
        assert_eq!(saved(None), "–");
    }

    #[test]
    fn the_cells_of_a_row_are_labelled_as_their_columns() {
        let tokens = [(0, "default"), (1, "shop")];
        let tokens = tokens.map(|(number, name)| TokenUsage::example(number, name));
        let entry = UsageEntry {
            token: TokenNumber(1),
            ..UsageEntry::example(SystemTime::UNIX_EPOCH)
        };
        let history = UsagePage {
            entries: vec![(1, entry)],
            next_before: None,
        };
        let text = history_card(&history, &tokens, false).into_string();
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
        assert_eq!(heads.len(), 11, "{text}");
        assert!(text.contains("data-label=\"Token\">shop<"), "{text}");
        let of_one = history_card(&history, &tokens[..1], false).into_string();
        assert!(!of_one.contains("Token"), "{of_one}");
    }

    #[test]
    fn the_script_updates_what_a_conversion_changes() {
        for id in ["totals", "quota", "history"] {
            let name = format!("\"{id}\"");
            assert!(crate::dashboard::SCRIPT.contains(&name), "{id}");
            assert!(crate::dashboard::STYLE.contains(".history"), "{id}");
        }
    }
}
