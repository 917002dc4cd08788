//! Failed conversions on the dashboard.

use super::history_view::HistoryView;
use super::paths;
use super::units::{size, time};
use crate::store::{Failure, FailurePage, TokenUsage, token_name};
use maud::{Markup, html};

/// Failed conversions on one page.
pub const FAILURE_ROWS: usize = 10;

/// Failed conversions. The card is empty if there are none. `reason` gives a problem in words by
/// its code.
pub fn failures_card(
    view: &HistoryView,
    page: &FailurePage,
    tokens: Option<&[TokenUsage]>,
    reason: fn(&str) -> Option<&'static str>,
) -> Markup {
    let is_later_page = view.failed_before.is_some();
    html! {
        @if !page.failures.is_empty() || is_later_page {
            section.card #failures data-utc {
                div.title {
                    h2 { "Failed conversions" }
                    a href=(view.link(paths::FAILURES_CSV, &[])) { "Get as CSV" }
                }
                p.hint { "Not counted against your quota. Kept for 30 days." }
                div.scroll tabindex="0" role="region" aria-label="Failed conversions" {
                    table.labelled {
                        thead {
                            tr {
                                th { "Time (UTC)" } th { "Reason" } th.number { "Status" } th.number { "In" }
                                @if tokens.is_some() { th { "Token" } }
                            }
                        }
                        tbody {
                            @for (_, failure) in &page.failures { (failure_row(failure, tokens, reason)) }
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

fn failure_row(
    failure: &Failure,
    tokens: Option<&[TokenUsage]>,
    reason: fn(&str) -> Option<&'static str>,
) -> Markup {
    html! {
        tr {
            td.when data-label="Time (UTC)" { (time(failure.time)) }
            td.reason data-label="Reason" {
                @if let Some(reason) = reason(&failure.code) { (reason) " " }
                code { (failure.code) }
            }
            td.number data-label="Status" { (failure.status) }
            td.number data-label="In" { (size(failure.input_bytes)) }
            @if let Some(tokens) = tokens {
                td data-label="Token" { (token_name(tokens, failure.token)) }
            }
        }
    }
}
