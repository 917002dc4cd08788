//! The usage history on the dashboard: conversions, their sums by month and by day, and failed
//! conversions.

use super::paths;
use super::units::{date_and_time, saved, size};
use crate::store::{
    AccountId, EntryId, Failure, FailurePage, FilterError, FilterTexts, Period, Store, StoreError,
    TokenUsage, USAGE_FORMATS, UsageEntry, UsageFilter, UsagePage, UsageSum, UsageTotals,
    WatermarkKind, period_text, token_name,
};
use maud::{Markup, html};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

/// Conversions on one page.
const ROWS: usize = 25;

/// Failed conversions on one page.
const FAILURE_ROWS: usize = 10;

/// The days whose sums are shown one by one.
const DAYS: u32 = 31;

/// The days whose sums are shown by month: two years.
const MONTH_DAYS: u32 = 731;

/// Which part of the history is shown.
#[derive(Clone, Debug, Default)]
pub struct HistoryView {
    /// The filter of conversions and failures.
    pub texts: FilterTexts,
    /// Conversions older than this entry.
    pub before: Option<EntryId>,
    /// Failures older than this one.
    pub failed_before: Option<EntryId>,
}

/// Why there is no history.
pub enum HistoryError {
    /// The store failed.
    Store(StoreError),
    /// A filter cannot be used.
    Filter(FilterError),
}

impl From<StoreError> for HistoryError {
    fn from(error: StoreError) -> HistoryError {
        HistoryError::Store(error)
    }
}

impl From<FilterError> for HistoryError {
    fn from(error: FilterError) -> HistoryError {
        HistoryError::Filter(error)
    }
}

/// The history of an account.
///
/// # Errors
/// The store failed, or a filter cannot be used.
pub fn history(
    store: &Store,
    account: AccountId,
    view: &HistoryView,
) -> Result<Markup, HistoryError> {
    let tokens = store.tokens(account)?;
    let filter = view.texts.usage(&tokens)?;
    let page = store.usage(account, &filter, view.before, ROWS)?;
    let sums = if filter.is_empty() {
        None
    } else {
        let mut sums = UsageTotals::default();
        for day in store.usage_sums(account, &filter, Period::Day)? {
            sums += day.totals;
        }
        Some(sums)
    };
    let last = filter.days.last.min(UsageFilter::today(store.now()));
    let since = |days| {
        let mut filter = filter.clone();
        filter.days.first = filter.days.first.max(last.saturating_sub(days - 1));
        filter
    };
    let months = store.usage_sums(account, &since(MONTH_DAYS), Period::Month)?;
    let days = store.usage_sums(account, &since(DAYS), Period::Day)?;
    let failure_filter = view.texts.failures(&tokens)?;
    let failures = store.failures(account, &failure_filter, view.failed_before, FAILURE_ROWS)?;
    // Whoever has had one token only does not see which one it was.
    let tokens = (tokens.len() > 1).then_some(&*tokens);
    Ok(html! {
        section.card #history {
            (conversions(view, &page, sums, tokens))
            (sums_table("By month", "Month", Period::Month, &months))
            (sums_table("By day", "Day (UTC)", Period::Day, &days))
        }
        (failures_card(view, &failures, tokens))
    })
}

fn conversions(
    view: &HistoryView,
    page: &UsagePage,
    sums: Option<UsageTotals>,
    tokens: Option<&[TokenUsage]>,
) -> Markup {
    let is_later_page = view.before.is_some();
    // Ids that are no sequence numbers mean nothing to people.
    let has_numbers = page.entries.iter().all(|(id, _)| id.sequence().is_some());
    html! {
        div.title {
            h2 { "Usage history" }
            a href=(view.link(paths::USAGE_CSV, &[])) { "Get as CSV" }
        }
        @if !page.entries.is_empty() || is_later_page || sums.is_some() {
            (filter_form(view, tokens, sums.is_some()))
        }
        @if let Some(sums) = sums {
            p #filtered {
                "These are " (sums.conversions) " conversions: " (size(sums.input_bytes)) " in, "
                (size(sums.output_bytes)) " out, saved " (saved(sums.saved_percent())) "."
            }
        }
        @if page.entries.is_empty() {
            p.hint {
                @if page.next_before.is_some() { "None among the newest of them; go on with older ones." }
                @else if is_later_page { "There are no older conversions." }
                @else if sums.is_some() { "No conversion is like that, or its entry was removed." }
                @else { "No conversions yet." }
            }
        } @else {
            div.scroll tabindex="0" role="region" aria-label="Usage history" {
                table.history {
                    thead {
                        tr {
                            @if has_numbers { th.number { "No." } }
                            th { "Time (UTC)" } th { "Format" }
                            th.number { "In" } th.number { "Out" } th.number { "Saved" }
                            th.number { "Pixels" } th.number { "Quality" } th { "Watermark" } th.number { "Took" }
                            @if tokens.is_some() { th { "Token" } }
                        }
                    }
                    tbody { @for (id, entry) in &page.entries { (row(has_numbers.then_some(*id), entry, tokens)) } }
                }
            }
        }
        p.paging {
            @if is_later_page { a href=(view.page(&[])) { "Newest" } }
            @if let Some(before) = page.next_before {
                a href=(view.page(&[("before", &before.to_string())])) { "Older" }
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
            form method="get" action={ (paths::DASHBOARD) "#history" } {
                div {
                    label for="from" { "From (UTC)" }
                    input #from name="from" type="date" value=(texts.from);
                }
                div {
                    label for="to" { "To" }
                    input #to name="to" type="date" value=(texts.to);
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
                    @if is_filtered { a href={ (paths::DASHBOARD) "#history" } { "Show all" } }
                }
            }
        }
    }
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
fn row(id: Option<EntryId>, entry: &UsageEntry, tokens: Option<&[TokenUsage]>) -> Markup {
    html! {
        tr {
            @if let Some(id) = id { td.number data-label="No." { (id) } }
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

/// Sums, newest first; nothing if there are none.
fn sums_table(title: &str, column: &str, period: Period, sums: &[UsageSum]) -> Markup {
    html! {
        @if !sums.is_empty() {
            details.sums {
                summary { (title) }
                div.scroll tabindex="0" role="region" aria-label=(title) {
                    table {
                        thead {
                            tr {
                                th { (column) } th.number { "Conversions" }
                                th.number { "In" } th.number { "Out" } th.number { "Saved" }
                            }
                        }
                        tbody {
                            @for sum in sums.iter().rev() {
                                tr {
                                    td { (period_text(period, sum.first_day)) }
                                    td.number { (sum.totals.conversions) }
                                    td.number { (size(sum.totals.input_bytes)) }
                                    td.number { (size(sum.totals.output_bytes)) }
                                    td.number { (saved(sum.totals.saved_percent())) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Failed conversions. Whoever has none does not see the card.
fn failures_card(view: &HistoryView, page: &FailurePage, tokens: Option<&[TokenUsage]>) -> Markup {
    let is_later_page = view.failed_before.is_some();
    html! {
        @if !page.failures.is_empty() || is_later_page {
            section.card #failures {
                div.title {
                    h2 { "Failed conversions" }
                    a href=(view.link(paths::FAILURES_CSV, &[])) { "Get as CSV" }
                }
                p.hint { "They count nowhere, and are kept for 30 days." }
                div.scroll tabindex="0" role="region" aria-label="Failed conversions" {
                    table.history {
                        thead {
                            tr {
                                th.number { "Status" } th { "Time (UTC)" } th { "Reason" }
                                th.number { "In" }
                                @if tokens.is_some() { th { "Token" } }
                            }
                        }
                        tbody {
                            @for (_, failure) in &page.failures { (failure_row(failure, tokens)) }
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

fn failure_row(failure: &Failure, tokens: Option<&[TokenUsage]>) -> Markup {
    html! {
        tr {
            td.number data-label="Status" { (failure.status) }
            td data-label="Time (UTC)" { (date_and_time(failure.time)) }
            td data-label="Reason" { code { (failure.code) } }
            td.number data-label="In" { (size(failure.input_bytes)) }
            @if let Some(tokens) = tokens {
                td data-label="Token" { (token_name(tokens, failure.token)) }
            }
        }
    }
}

impl HistoryView {
    /// The path with the filter and more parameters in its query.
    fn link(&self, path: &str, more: &[(&str, &str)]) -> String {
        let FilterTexts {
            from,
            to,
            token_name,
            format,
            status,
        } = &self.texts;
        let filters = [
            ("from", &**from),
            ("to", to),
            ("token_name", token_name),
            ("format", format),
            ("status", status),
        ];
        let given = filters.iter().filter(|(_, text)| !text.is_empty());
        let mut link = path.to_owned();
        for (index, (name, text)) in given.chain(more).enumerate() {
            link.push(if index == 0 { '?' } else { '&' });
            link.push_str(name);
            link.push('=');
            link.extend(utf8_percent_encode(text, NON_ALPHANUMERIC));
        }
        link
    }

    fn page(&self, more: &[(&str, &str)]) -> String {
        self.link(paths::DASHBOARD, more) + "#history"
    }

    fn failures(&self, more: &[(&str, &str)]) -> String {
        self.link(paths::DASHBOARD, more) + "#failures"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::TokenNumber;
    use std::time::SystemTime;

    #[test]
    fn the_cells_of_a_row_are_labelled_as_their_columns() {
        let tokens = [(0, "default"), (1, "shop")];
        let tokens = tokens.map(|(number, name)| TokenUsage::example(number, name));
        let entry = UsageEntry {
            token: TokenNumber(1),
            ..UsageEntry::example(SystemTime::UNIX_EPOCH)
        };
        let page = UsagePage {
            entries: vec![(EntryId(1), entry)],
            next_before: None,
        };
        let failures = FailurePage {
            failures: vec![(
                EntryId(1),
                Failure {
                    time: SystemTime::UNIX_EPOCH,
                    token: TokenNumber(1),
                    status: 413,
                    code: "body_too_large".to_owned(),
                    input_bytes: 7,
                },
            )],
            next_before: None,
        };
        let view = HistoryView::default();
        let history = |tokens| conversions(&view, &page, None, tokens).into_string();
        let failures = |tokens| failures_card(&view, &failures, tokens).into_string();
        for (text, of_one, columns) in [
            (history(Some(&tokens)), history(None), 11),
            (failures(Some(&tokens)), failures(None), 5),
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
    fn links_carry_the_filter() {
        let view = HistoryView {
            texts: FilterTexts {
                from: "2026-11-01".to_owned(),
                token_name: "a & b".to_owned(),
                ..FilterTexts::default()
            },
            ..HistoryView::default()
        };
        assert_eq!(
            view.page(&[("before", "7")]),
            "/dashboard?from=2026%2D11%2D01&token_name=a%20%26%20b&before=7#history"
        );
        assert_eq!(HistoryView::default().page(&[]), "/dashboard#history");
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
