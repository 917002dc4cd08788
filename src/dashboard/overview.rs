//! The dashboard: totals, charts and history of the signed-in account.

use super::context::{PageContext, SignedIn};
use super::document::{Viewer, document_with};
use super::duration::amount;
use super::first_steps::first_steps;
use super::history::history;
use super::history_view::HistoryView;
use super::outcome::{Outcome, PageStatus};
use super::paths;
use super::units::{date_and_time, saved, saved_size, size};
use crate::store::{AccountId, Limits, StoreError, UsageTotals};
use maud::{Markup, html};

/// The part of a quota from which on the page warns, in percent.
const NEARLY_USED: u64 = 80;

/// The dashboard, with these entries of the history.
pub fn overview(context: &SignedIn<'_>, view: &HistoryView) -> Result<Outcome, StoreError> {
    let token = context.store.token(context.session.account.id)?;
    let all = context.store.usage_totals(context.session.account.id)?;
    let history = history(context, context.session.account.id, view)?;
    let is_new = all.conversions == 0 && history.totals.is_some();
    let content = html! {
        div.title {
            h1 { "Dashboard" }
            @if !is_new { a.button href=(paths::CONVERTING) { "Convert pictures" } }
        }
        @if !is_new {
            p.hint { "Programs convert with " a href=(paths::TOKENS) { "your tokens" } "." }
        }
        @if is_new {
            (first_steps(context, &token))
        } @else {
            (history.filter)
            @if let Some((totals, before)) = &history.totals { (figures(totals, before.as_ref())) }
        }
        (quota(context, context.session.account.id)?)
        @if !is_new { (history.charts) }
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

/// The totals of the conversions, the bytes saved first, each with its change against as many days
/// before.
fn figures(totals: &UsageTotals, before: Option<&(u32, UsageTotals)>) -> Markup {
    let saved_bytes = |it: &UsageTotals| it.input_bytes.saturating_sub(it.output_bytes);
    let percent = html! { " " small { (saved(totals.saved_percent())) } };
    let tile = |name, text: String, more: Markup, value: &dyn Fn(&UsageTotals) -> u64| {
        html! {
            div {
                dt { (name) }
                dd { (text) (more) }
                @if let Some((_, before)) = before { dd.change { (change(value(totals), value(before))) } }
            }
        }
    };
    let UsageTotals {
        conversions,
        input_bytes,
        output_bytes,
    } = *totals;
    html! {
        dl.totals #totals {
            (tile("Bytes saved", saved_size(input_bytes, output_bytes), percent, &saved_bytes))
            (tile("Conversions", conversions.to_string(), html! {}, &|it| it.conversions))
            (tile("Bytes in", size(input_bytes), html! {}, &|it| it.input_bytes))
            (tile("Bytes out", size(output_bytes), html! {}, &|it| it.output_bytes))
        }
        @if let Some((days, _)) = before {
            p.hint #change { "Changes are against the " (amount((*days).into(), "day")) " before." }
        }
    }
}

/// The change of a value in percent, such as `+12 %`.
fn change(now: u64, before: u64) -> String {
    match (now, before) {
        (0, 0) => "no change".to_owned(),
        (_, 0) => "none before".to_owned(),
        _ => {
            let percent = (now as f64 / before as f64 - 1.0) * 100.0;
            format!("{percent:+.0} %").replace('-', "−")
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
                p {
                    (month.conversions) " of " (amount(quota, "conversion")) " · "
                    strong { (quota.saturating_sub(month.conversions)) " left" }
                }
            }
            meter min="0" max=(quota) high=(quota.saturating_mul(NEARLY_USED) / 100) optimum="0"
                value=(month.conversions) aria-labelledby="quota-title" {}
            p.hint { "The next month begins on " (day) " (UTC)." }
            @if is_used { p.alert { "The quota is used up: until then, conversions are refused." } }
            @else if is_near { p.alert {
                "At least " (NEARLY_USED) " % of the quota is used. Once nothing is left, conversions are refused \
                 until the next month."
            } }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_have_signs() {
        for (now, before, expected) in [
            (112, 100, "+12 %"),
            (50, 100, "−50 %"),
            (0, 100, "−100 %"),
            (100, 100, "+0 %"),
            (1, 0, "none before"),
            (0, 0, "no change"),
        ] {
            assert_eq!(change(now, before), expected);
        }
    }
}
