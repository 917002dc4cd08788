//! The dashboard: token, totals and history of the signed-in account.

use super::context::PageContext;
use super::document::{Viewer, command, curl_command, document};
use super::history::{HistoryError, HistoryView, history};
use super::outcome::Outcome;
use super::paths;
use super::units::{date_and_time, saved, size};
use crate::store::{AccountId, Limits, StoreError, UsageTotals};
use maud::{Markup, html};

/// The dashboard, with these entries of the history.
///
/// # Errors
/// The store failed, or a filter cannot be used.
pub fn overview(context: &PageContext<'_>, view: &HistoryView) -> Result<Outcome, HistoryError> {
    let Some(session) = context.session()? else {
        return Ok(Outcome::redirect(paths::SIGN_IN));
    };
    let token = context.store.token(session.account.id)?;
    let totals = context.store.usage_totals(session.account.id)?;
    let history = history(context.store, session.account.id, view)?;
    let content = html! {
        h1 { "Dashboard" }
        (totals_row(&totals))
        (quota_line(context, session.account.id)?)
        (token_card(context, &token))
        (history)
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
        .usage_in_month(account, None, context.store.now())?;
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

fn token_card(context: &PageContext<'_>, token: &str) -> Markup {
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
            p.hint {
                "On the page of " a href=(paths::TOKENS) { "tokens" } " it is replaced, and more are made: one for each \
                 place that converts, with limits and parameters of its own."
            }
        }
    }
}
