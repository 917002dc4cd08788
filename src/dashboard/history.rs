//! The usage history on the dashboard: sums, conversions, and their filter.

use super::chart::{chart, shares};
use super::context::PageContext;
use super::duration::amount;
use super::failures::{FAILURE_ROWS, GROUPED_FAILURES, failures_card};
use super::forms::alert;
use super::history_view::HistoryView;
use super::paths;
use super::units::{saved, size, time};
use super::usage::Usage;
use crate::store::{
    AccountId, EntryId, FilterError, Page, StoreError, TokenUsage, USAGE_FORMATS, UsageEntry,
    UsageFilter, UsageTotals, WatermarkKind, day_text, end_of_day, token_name,
};
use maud::{Markup, html};

/// Conversions on one page, which takes less than 3,000 pixels on a phone.
const ROWS: usize = 20;

/// The usage and the history of an account, as far as they pass a filter.
pub struct History {
    /// The choice of days, and the filter.
    pub filter: Markup,
    /// Over all conversions that pass, and over those of as many days before; `None` if the filter
    /// cannot be used.
    pub totals: Option<(UsageTotals, Option<(u32, UsageTotals)>)>,
    /// Charts.
    pub charts: Markup,
    /// Lists of conversions and of failed ones.
    pub lists: Markup,
}

/// The usage and the history of an account. If the filter cannot be used, there is a reason
/// instead.
pub fn history(
    context: &PageContext<'_>,
    account: AccountId,
    view: &HistoryView,
) -> Result<History, StoreError> {
    let store = context.store;
    let all_tokens = store.tokens(account)?;
    // The token is not shown if there was only one ever.
    let tokens = (all_tokens.len() > 1).then_some(&*all_tokens);
    let today = UsageFilter::today(store.now());
    let filters = view.texts.usage(&all_tokens);
    let filters = filters.and_then(|filter| Ok((filter, view.texts.failures(&all_tokens)?)));
    let (filter, failure_filter) = match filters {
        Ok(filters) => filters,
        Err(error) => {
            return Ok(History {
                filter: filter_section(
                    view,
                    tokens,
                    today,
                    true,
                    &alert(Some(&reason(view, &error))),
                ),
                totals: None,
                charts: html! {},
                lists: html! {},
            });
        }
    };
    let page = store.usage(account, &filter, view.before, ROWS)?;
    let usage = Usage::of(store, account, &filter)?;
    let failures = store.failures(account, &failure_filter, view.failed_before, FAILURE_ROWS)?;
    // The first page has all failures if there is no older one.
    let has_more = view.failed_before.is_some() || failures.next_before.is_some();
    let newest = has_more
        .then(|| store.failures(account, &failure_filter, None, GROUPED_FAILURES))
        .transpose()?;
    let newest = newest.as_ref().unwrap_or(&failures);
    let is_filtered = !filter.is_empty();
    let news = html! {
        @if is_filtered {
            p #filtered { (amount(usage.totals.conversions, "conversion")) " of this filter." }
        }
    };
    Ok(History {
        filter: filter_section(view, tokens, today, is_filtered, &news),
        totals: Some((usage.totals, usage.before)),
        charts: html! {
            @if usage.totals.conversions > 0 {
                section.card #charts {
                    (chart(usage.period, &usage.sums))
                    (shares_of(&usage, &all_tokens))
                }
            }
        },
        lists: html! {
            section.card #history { (conversions(view, &page, is_filtered, tokens)) }
            (failures_card(view, &failures, newest, tokens, context.problem_title))
        },
    })
}

/// Why a filter cannot be used, in the words of its form.
fn reason(view: &HistoryView, error: &FilterError) -> String {
    let FilterError {
        name,
        given,
        allowed,
    } = error;
    if *name == "to" && !day(given).is_empty() {
        let first = &view.texts.from;
        return format!("The last day, {given}, comes before the first one, {first}.");
    }
    let field = match *name {
        "from" => "First day",
        "to" => "Last day",
        "format" => "Format",
        "token_name" => "Token",
        _ => "Status",
    };
    format!("{field}: {given:?} was given; allowed: {allowed}.")
}

fn filter_section(
    view: &HistoryView,
    tokens: Option<&[TokenUsage]>,
    today: u32,
    is_filtered: bool,
    news: &Markup,
) -> Markup {
    html! {
        section #usage aria-label="Usage" {
            (presets(view, today))
            (filter_form(view, tokens, is_filtered))
            (news)
        }
    }
}

fn shares_of(usage: &Usage, tokens: &[TokenUsage]) -> Markup {
    let of_tokens = usage.tokens.iter();
    let of_tokens: Vec<_> = of_tokens
        .map(|(token, totals)| (token_name(tokens, *token), *totals))
        .collect();
    let of_formats = usage.formats.iter();
    let of_formats: Vec<_> = of_formats
        .map(|(format, totals)| (&**format, *totals))
        .collect();
    html! {
        @if of_tokens.len() > 1 || of_formats.len() > 1 {
            div.plots {
                (shares("by-token", "Token", &of_tokens))
                (shares("by-format", "Format", &of_formats))
            }
        }
    }
}

fn conversions(
    view: &HistoryView,
    page: &Page<UsageEntry>,
    is_filtered: bool,
    tokens: Option<&[TokenUsage]>,
) -> Markup {
    let is_later_page = view.before.is_some();
    // Ids that are no sequence numbers mean nothing to people.
    let has_numbers = page.entries.iter().all(|(id, _)| id.sequence().is_some());
    html! {
        div.title {
            h2 { "Usage history" }
            @if !page.entries.is_empty() {
                a href=(view.link(paths::USAGE_CSV, &[])) { @if is_filtered { "Get these as CSV" } @else { "Get as CSV" } }
            }
        }
        @if page.entries.is_empty() {
            p.hint {
                @if page.next_before.is_some() { "None among the newest of them; go on with older ones." }
                @else if is_later_page { "There are no older conversions." }
                @else if is_filtered { "No conversion is like that, or its entry was removed." }
                @else { "No conversions yet." }
            }
        } @else {
            div.scroll tabindex="0" role="region" aria-label="Usage history" {
                table.labelled.history {
                    thead {
                        tr {
                            @if has_numbers { th.number { "No." } }
                            th { "Time (UTC)" } th { "Format" }
                            th.number { "In" } th.number { "Out" } th.number { "Saved" }
                            th.number { "Pixels" } th.number { "Quality" } th { "Watermark" } th.number { "Took" }
                            @if tokens.is_some() { th { "Token" } }
                            th { "Request" }
                        }
                    }
                    tbody { @for (id, entry) in &page.entries { (row(view, has_numbers, *id, entry, tokens)) } }
                }
            }
        }
        p.paging {
            @if is_later_page {
                a href=(view.page(&[])) { "Newest" }
                a href=(view.newer()) { "Newer" }
            }
            @if let Some(before) = page.next_before { a href=(view.older(before)) { "Older" } }
        }
    }
}

/// Links to the last days. They keep the rest of the filter.
fn presets(view: &HistoryView, today: u32) -> Markup {
    let texts = &view.texts;
    let first = |days: u32| day_text(today.saturating_sub(days - 1));
    let presets = [
        ("7 days", first(7)),
        ("30 days", first(30)),
        ("90 days", first(90)),
        ("365 days", first(365)),
        ("All", String::new()),
    ];
    html! {
        nav.presets aria-label="Time" {
            @for (name, from) in presets {
                @let is_current = texts.to.is_empty() && texts.from == from;
                a href=(view.since(from)) aria-current=[is_current.then_some("true")] { (name) }
            }
        }
    }
}

/// The form that filters. Without a filter it is folded.
fn filter_form(view: &HistoryView, tokens: Option<&[TokenUsage]>, is_filtered: bool) -> Markup {
    let texts = &view.texts;
    html! {
        details.filter open[is_filtered] {
            summary { "Filter" }
            form method="get" action={ (paths::DASHBOARD) "#usage" } {
                div {
                    label for="from" { "First day (UTC)" }
                    input #from name="from" type="date" value=(day(&texts.from));
                }
                div {
                    label for="to" { "Last day (UTC)" }
                    input #to name="to" type="date" value=(day(&texts.to));
                }
                div {
                    label for="format" { "Format" }
                    select #format name="format" {
                        option value="" { "all" }
                        @for format in USAGE_FORMATS {
                            option value=(format) selected[texts.format == format] { (format) }
                        }
                    }
                }
                @if let Some(tokens) = tokens {
                    div {
                        label for="token_name" { "Token" }
                        select #token_name name="token_name" {
                            option value="" { "all" }
                            @for name in names(tokens) {
                                option value=(name) selected[texts.token_name == name] { (name) }
                            }
                        }
                    }
                }
                div.submit {
                    button.secondary type="submit" { "Show" }
                    @if is_filtered { a href={ (paths::DASHBOARD) "#usage" } { "Show all" } }
                }
            }
        }
    }
}

/// The text, if it is a day: fields for days take nothing else.
fn day(text: &str) -> &str {
    end_of_day(text).map_or("", |_| text)
}

/// The names of tokens, each once, those of deleted ones last.
fn names(tokens: &[TokenUsage]) -> Vec<&str> {
    let mut tokens: Vec<_> = tokens.iter().collect();
    tokens.sort_by_key(|usage| usage.deleted.is_some());
    let mut names: Vec<&str> = Vec::new();
    for usage in tokens {
        let name = &*usage.token.settings.name;
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// One row of the history. On narrow screens each cell shows its own label in place of the
/// column's head.
fn row(
    view: &HistoryView,
    has_number: bool,
    id: EntryId,
    entry: &UsageEntry,
    tokens: Option<&[TokenUsage]>,
) -> Markup {
    html! {
        tr id={ "request-" (entry.request) } {
            @if has_number { td.number data-label="No." { (id) } }
            td.when data-label="Time (UTC)" { (time(entry.time)) }
            td data-label="Format" { (entry.format) }
            td.number data-label="In" { (size(entry.input_bytes)) }
            td.number data-label="Out" { (size(entry.output_bytes)) }
            td.number data-label="Saved" { (saved(entry.saved_percent())) }
            td.number data-label="Pixels" { (entry.width) " × " (entry.height) }
            td.number data-label="Quality" { (entry.quality) }
            @if entry.watermark == WatermarkKind::None { td.none data-label="Watermark" { "–" } }
            @else { td data-label="Watermark" { (entry.watermark.name()) } }
            td.number data-label="Took" { (entry.milliseconds) " ms" }
            @if let Some(tokens) = tokens {
                td data-label="Token" { (token_name(tokens, entry.token)) }
            }
            td data-label="Request" {
                a.request href=(view.entry(id, entry.request)) { code { (entry.request) } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Failure, TokenNumber};
    use std::time::SystemTime;

    #[test]
    fn the_cells_of_a_row_are_labelled_as_their_columns() {
        let tokens = [(0, "default"), (1, "shop")];
        let tokens = tokens.map(|(number, name)| TokenUsage::example(number, name));
        let entry = UsageEntry {
            token: TokenNumber(1),
            ..UsageEntry::example(SystemTime::UNIX_EPOCH)
        };
        let page = Page {
            entries: vec![(EntryId(1), entry)],
            next_before: None,
        };
        let failures = Page {
            entries: vec![(EntryId(1), Failure::example(413, "body_too_large"))],
            next_before: None,
        };
        let view = HistoryView::default();
        let history = |tokens| conversions(&view, &page, false, tokens).into_string();
        let failures =
            |tokens| failures_card(&view, &failures, &failures, tokens, |_| None).into_string();
        for (text, of_one, columns) in [
            (history(Some(&tokens)), history(None), 12),
            (failures(Some(&tokens)), failures(None), 10),
        ] {
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
            assert_eq!(heads.len(), columns, "{text}");
            assert!(text.contains("data-label=\"Token\">shop<"), "{text}");
            assert!(!of_one.contains("Token"), "{of_one}");
        }
    }

    #[test]
    fn names_are_offered_once_and_those_of_deleted_tokens_last() {
        let mut tokens = [(0, "default"), (1, "old"), (2, "shop"), (3, "shop")]
            .map(|(number, name)| TokenUsage::example(number, name));
        tokens[1].deleted = Some(SystemTime::UNIX_EPOCH);
        tokens[2].deleted = Some(SystemTime::UNIX_EPOCH);
        assert_eq!(names(&tokens), ["default", "shop", "old"]);
    }
}
