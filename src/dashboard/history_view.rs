//! The shown part of the history, and links to other parts.

use super::paths;
use crate::store::{EntryId, FilterTexts, RequestId};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

/// The most pages that an address has the way back to.
const MOST_NEWER: usize = 40;

/// The shown part of the history.
#[derive(Clone, Debug, Default)]
pub struct HistoryView {
    /// The filter of conversions and failures.
    pub texts: FilterTexts,
    /// Conversions older than this entry.
    pub before: Option<EntryId>,
    /// The `before` of the pages between the newest one and this one, newest first.
    pub newer: Vec<EntryId>,
    /// Failures older than this one.
    pub failed_before: Option<EntryId>,
}

impl HistoryView {
    /// The path with the filter and more parameters in its query.
    pub(super) fn link(&self, path: &str, more: &[(&str, &str)]) -> String {
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

    /// The history, with more parameters.
    pub(super) fn page(&self, more: &[(&str, &str)]) -> String {
        self.link(paths::DASHBOARD, more) + "#history"
    }

    /// The row of an entry, as the first one of its page.
    pub(super) fn entry(&self, id: EntryId, request: RequestId) -> String {
        self.row("before", id, request)
    }

    /// The row of a failed conversion, as the first one of its page.
    pub(super) fn failure(&self, id: EntryId, request: RequestId) -> String {
        self.row("failed_before", id, request)
    }

    fn row(&self, name: &str, EntryId(id): EntryId, request: RequestId) -> String {
        let after = EntryId(id.saturating_add(1)).to_string();
        let page = self.link(paths::DASHBOARD, &[(name, &after)]);
        format!("{page}#request-{request}")
    }

    /// The page with the entries before these.
    pub(super) fn older(&self, before: EntryId) -> String {
        let newer: Vec<_> = self.newer.iter().copied().chain(self.before).collect();
        self.turned(Some(before), &newer)
    }

    /// The page with the entries after these.
    pub(super) fn newer(&self) -> String {
        match self.newer.split_last() {
            Some((before, newer)) => self.turned(Some(*before), newer),
            None => self.turned(None, &[]),
        }
    }

    /// At most [`MOST_NEWER`] pages are kept, so that the address has an end; from the first one of
    /// them it goes on to the newest one.
    fn turned(&self, before: Option<EntryId>, newer: &[EntryId]) -> String {
        let text = |ids: &[EntryId]| {
            ids.iter()
                .map(EntryId::to_string)
                .collect::<Vec<_>>()
                .join(",")
        };
        let newer = &newer[newer.len().saturating_sub(MOST_NEWER)..];
        let before = before.map(|before| before.to_string());
        let pairs = [
            ("before", before),
            ("newer", Some(text(newer)).filter(|it| !it.is_empty())),
        ];
        let given: Vec<_> = pairs
            .iter()
            .filter_map(|(name, it)| Some((*name, it.as_deref()?)))
            .collect();
        self.page(&given)
    }

    /// The usage from a day on, or of all days for an empty text.
    pub(super) fn since(&self, from: String) -> String {
        let mut view = self.clone();
        (view.texts.from, view.texts.to) = (from, String::new());
        view.link(paths::DASHBOARD, &[]) + "#usage"
    }

    /// The failed conversions, with more parameters.
    pub(super) fn failures(&self, more: &[(&str, &str)]) -> String {
        self.link(paths::DASHBOARD, more) + "#failures"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(
            view.since("2026-10-01".to_owned()),
            "/dashboard?from=2026%2D10%2D01&token_name=a%20%26%20b#usage"
        );
        assert_eq!(HistoryView::default().page(&[]), "/dashboard#history");
    }

    #[test]
    fn a_row_is_the_first_one_of_the_page_that_its_link_leads_to() {
        let view = HistoryView::default();
        let request = RequestId(0xabc);
        let entry = view.entry(EntryId(7), request);
        assert_eq!(entry, format!("/dashboard?before=8#request-{request}"));
        let failure = view.failure(EntryId(7), request);
        assert!(
            failure.starts_with("/dashboard?failed_before=8#"),
            "{failure}"
        );
    }

    #[test]
    fn pages_lead_to_older_and_newer_ones() {
        let view = |before, newer: &[u128]| HistoryView {
            before,
            newer: newer.iter().copied().map(EntryId).collect(),
            ..HistoryView::default()
        };
        let newest = view(None, &[]);
        assert_eq!(newest.older(EntryId(90)), "/dashboard?before=90#history");
        let second = view(Some(EntryId(90)), &[]);
        assert_eq!(
            second.older(EntryId(80)),
            "/dashboard?before=80&newer=90#history"
        );
        assert_eq!(second.newer(), "/dashboard#history");
        let fourth = view(Some(EntryId(70)), &[90, 80]);
        assert_eq!(fourth.newer(), "/dashboard?before=80&newer=90#history");
        let late = view(Some(EntryId(5)), &[7; 2 * MOST_NEWER]);
        assert!(late.older(EntryId(4)).ends_with("%2C7%2C5#history"));
        assert!(late.older(EntryId(4)).len() < 8 * MOST_NEWER);
    }
}
