//! The dashboard: token, totals and history of the signed-in account.

use super::context::{PageContext, SignedIn};
use super::document::{Viewer, command, curl_command, document_with};
use super::duration::amount;
use super::first_steps::first_steps;
use super::history::history;
use super::history_view::HistoryView;
use super::outcome::{Outcome, PageStatus};
use super::paths;
use super::token_field::{Label, masked, token_field};
use super::units::{date_and_time, saved, saved_size, size};
use crate::store::{AccountId, Limits, StoreError, TokenNumber, UsageTotals};
use maud::{Markup, html};

/// The part of a quota from which on the page warns, in percent.
const NEARLY_USED: u64 = 90;

/// The dashboard, with these entries of the history.
pub fn overview(context: &SignedIn<'_>, view: &HistoryView) -> Result<Outcome, StoreError> {
    let token = context.store.token(context.session.account.id)?;
    let all = context.store.usage_totals(context.session.account.id)?;
    let history = history(context, context.session.account.id, view)?;
    let is_new = all.conversions == 0 && history.totals.is_some();
    let content = html! {
        div.title {
            h1 { "Dashboard" }
            a.button href=(paths::CONVERTING) { "Convert pictures" }
        }
        @if is_new {
            (first_steps(context, &token))
        } @else {
            (history.filter)
            @if let Some(totals) = &history.totals { (figures(totals)) }
        }
        (quota(context, context.session.account.id)?)
        @if !is_new {
            (token_card(context, &token))
            (history.charts)
        }
        (history.lists)
    };
    let viewer = Viewer::of(&context.session);
    let page = document_with(paths::USAGE_SCRIPT, "Dashboard", viewer, &content);
    let status = match history.totals {
        Some(_) => PageStatus::Shown,
        None => PageStatus::Invalid,
    };
    Ok(Outcome::page_with(page, status))
}

/// The totals of the conversions, the bytes saved first.
fn figures(totals: &UsageTotals) -> Markup {
    let UsageTotals {
        conversions,
        input_bytes,
        output_bytes,
    } = *totals;
    html! {
        dl.totals #totals {
            div {
                dt { "Bytes saved" }
                dd { (saved_size(input_bytes, output_bytes)) " " small { (saved(totals.saved_percent())) } }
            }
            div { dt { "Conversions" } dd { (conversions) } }
            div { dt { "Bytes in" } dd { (size(input_bytes)) } }
            div { dt { "Bytes out" } dd { (size(output_bytes)) } }
        }
    }
}

/// How much of the monthly quota is used, and when the next month begins; empty without a quota.
fn quota(context: &PageContext<'_>, account: AccountId) -> Result<Markup, StoreError> {
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
    let quota = quota.get();
    let is_used = month.conversions >= quota;
    let is_near = month.conversions >= quota / 100 * NEARLY_USED + quota % 100 * NEARLY_USED / 100;
    Ok(html! {
        section.card #quota {
            div.title {
                h2 #quota-title { "This month" }
                p { (month.conversions) " of " (amount(quota, "conversion")) }
            }
            meter min="0" max=(quota) high=(quota.saturating_mul(NEARLY_USED) / 100) optimum="0"
                value=(month.conversions) aria-labelledby="quota-title" {}
            p.hint { "The next month begins on " (day) " (UTC)." }
            @if is_used { p.alert { "The quota is used up: until then, conversions are refused." } }
            @else if is_near { p.alert { "The quota is nearly used up. Then conversions are refused." } }
        }
    })
}

fn token_card(context: &SignedIn<'_>, token: &str) -> Markup {
    let curl = curl_command(context.base_url, &masked(token));
    let label = Label::Above("Keep it to yourself: whoever has it converts in your name.");
    html! {
        section.card {
            h2 { "API token" }
            (token_field(&context.session, TokenNumber::DEFAULT, token, "token", &label))
            (command(&html! { h3 { "Ready to paste" } }, "curl", &curl))
            p.hint {
                "On the page of " a href=(paths::TOKENS) { "tokens" } " it is replaced, and more are made: one for each \
                 place that converts, with limits and parameters of its own."
            }
        }
    }
}
