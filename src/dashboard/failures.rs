//! Failed conversions on the dashboard.

use super::history_view::HistoryView;
use super::paths;
use super::units::{size, time};
use crate::store::{EntryId, Failure, Page, TokenUsage, token_name};
use maud::{Markup, html};

/// Failed conversions on one page.
pub const FAILURE_ROWS: usize = 10;

/// The newest failed conversions that are grouped by their reasons.
pub const GROUPED_FAILURES: usize = 1000;

/// The advice about problems, by the beginning of their codes; the first one that fits counts.
const ADVICE: [(&str, &str); 16] = [
    (
        "watermark_",
        "Check the address in watermark_image, and its host.",
    ),
    (
        "missing_characters",
        "Leave out the characters, or add a font to the server.",
    ),
    (
        "max_bytes_unreachable",
        "Allow more bytes, or set best_effort=true.",
    ),
    ("content_type_", "Send the picture's type as Content-Type."),
    (
        "wrong_format",
        "Send the type that the file has as Content-Type.",
    ),
    (
        "invalid_image",
        "Send the file again; it is damaged or cut short.",
    ),
    ("body_empty", "Send the picture as the body."),
    ("body_too_large", "Send a smaller file."),
    ("image_too_wide", "Make the picture smaller before."),
    ("too_many_pixels", "Make the picture smaller before."),
    ("too_much_memory", "Make the picture smaller before."),
    (
        "too_many_frames",
        "Send a shorter animation, or animation=first.",
    ),
    (
        "quota_exceeded",
        "Wait for the next month, or ask the operator for more.",
    ),
    (
        "rate_limited",
        "Send fewer at once; Retry-After says when the next one may come.",
    ),
    (
        "conversion_timeout",
        "Send a smaller picture, or a lower effort.",
    ),
    (
        "internal_error",
        "Tell the operator the name of the request.",
    ),
];

/// The beginnings of the codes that there is advice for.
#[cfg(test)]
pub fn advised() -> impl Iterator<Item = &'static str> {
    ADVICE.iter().map(|(start, _)| *start)
}

fn advice(code: &str) -> Option<&'static str> {
    let found = ADVICE.iter().find(|(start, _)| code.starts_with(start));
    found.map(|(_, advice)| *advice)
}

/// The codes of failures, each with their number and the newest one, the most frequent code first.
fn by_reason(page: &Page<Failure>) -> Vec<(usize, &Failure)> {
    let mut groups: Vec<(usize, &Failure)> = Vec::new();
    for (_, failure) in &page.entries {
        match groups.iter_mut().find(|(_, it)| it.code == failure.code) {
            Some((count, _)) => *count += 1,
            None => groups.push((1, failure)),
        }
    }
    groups.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    groups
}

/// Failed conversions, the newest ones grouped by reason, and one by one. The card is empty if
/// there are none. `reason` gives a problem in words by its code.
pub fn failures_card(
    view: &HistoryView,
    page: &Page<Failure>,
    newest: &Page<Failure>,
    tokens: Option<&[TokenUsage]>,
    reason: fn(&str) -> Option<&'static str>,
) -> Markup {
    let is_later_page = view.failed_before.is_some();
    html! {
        @if !page.entries.is_empty() || is_later_page {
            section.card #failures {
                div.title {
                    h2 { "Failed conversions" }
                    a href=(view.link(paths::FAILURES_CSV, &[])) { "Get as CSV" }
                }
                p.hint { "Not counted against your quota. Kept for 30 days." }
                table.labelled #reasons {
                    thead { tr { th { "Reason" } th.number { "Number" } th { "Last (UTC)" } th { "What to do" } } }
                    tbody {
                        @for (count, failure) in by_reason(newest) {
                            tr {
                                td.reason data-label="Reason" { (reason_of(failure, reason)) }
                                td.number data-label="Number" { (count) }
                                td data-label="Last (UTC)" { (time(failure.time)) }
                                td.reason data-label="What to do" {
                                    @match advice(&failure.code) {
                                        Some(advice) => (advice),
                                        None => a href={ (paths::DOCS_API) "#errors" } { "See the errors in the documentation." },
                                    }
                                }
                            }
                        }
                    }
                }
                @if newest.next_before.is_some() {
                    p.hint { "The newest " (newest.entries.len()) " are counted." }
                }
                details open[is_later_page] {
                    summary { "One by one" }
                div.scroll tabindex="0" role="region" aria-label="Failed conversions" {
                    table.labelled {
                        thead {
                            tr {
                                th { "Time (UTC)" } th { "Reason" } th.number { "Status" } th.number { "In" }
                                @if tokens.is_some() { th { "Token" } }
                                th { "Request" }
                            }
                        }
                        tbody {
                            @for (id, failure) in &page.entries { (failure_row(view, *id, failure, tokens, reason)) }
                        }
                    }
                }
                p.paging {
                    @if is_later_page { a href=(view.failures(&[])) { "Newest" } }
                    @if let Some(before) = page.next_before {
                        a href=(view.failures(&[("failed_before", &before.to_string())])) { "Older" }
                    }
                }
                }
            }
        }
    }
}

fn failure_row(
    view: &HistoryView,
    id: EntryId,
    failure: &Failure,
    tokens: Option<&[TokenUsage]>,
    reason: fn(&str) -> Option<&'static str>,
) -> Markup {
    html! {
        tr id={ "request-" (failure.request) } {
            td.when data-label="Time (UTC)" { (time(failure.time)) }
            td.reason data-label="Reason" {
                (reason_of(failure, reason))
            }
            td.number data-label="Status" { (failure.status) }
            td.number data-label="In" { (size(failure.input_bytes)) }
            @if let Some(tokens) = tokens {
                td data-label="Token" { (token_name(tokens, failure.token)) }
            }
            td data-label="Request" {
                a.request href=(view.failure(id, failure.request)) { code { (failure.request) } }
            }
        }
    }
}

/// A problem in words, and its code.
fn reason_of(failure: &Failure, reason: fn(&str) -> Option<&'static str>) -> Markup {
    html! {
        @if let Some(reason) = reason(&failure.code) { (reason) " " }
        code { (failure.code) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_grouped_by_their_codes() {
        let codes = [
            "busy",
            "wrong_format",
            "busy",
            "wrong_format",
            "busy",
            "watermark_status",
        ];
        let failures = codes.map(|code| (EntryId(1), Failure::example(400, code)));
        let page = Page {
            entries: failures.into(),
            next_before: None,
        };
        let groups = by_reason(&page);
        let groups: Vec<_> = groups
            .iter()
            .map(|(count, it)| (*count, &*it.code))
            .collect();
        assert_eq!(
            groups,
            [(3, "busy"), (2, "wrong_format"), (1, "watermark_status")]
        );
        assert!(advice("watermark_status").is_some_and(|it| it.contains("watermark_image")));
        assert_eq!(advice("unknown"), None);
    }
}
