//! Bar charts of conversions and bytes by day or month. The server draws them, so that they need no
//! script; the script adds a line with the values of the column under the pointer, which it reads
//! from the table below the chart.

use super::units::{saved, short_size, size};
use crate::store::{Period, UsageSum, UsageTotals, day_text, period_text};
use maud::{Markup, html};

/// The width of a column and the height of a chart in the units of its view box. The style
/// stretches both.
const COLUMN: usize = 10;
const HEIGHT: f64 = 100.0;

/// The most lines of a grid above the one of zero.
const LINES: u64 = 4;

/// The chart of these sums, oldest first: one plot of three, which radio buttons choose; with a
/// table of the same numbers.
pub fn chart(period: Period, sums: &[UsageSum]) -> Markup {
    let title = match period {
        Period::Day => "By day",
        Period::Month => "By month",
    };
    html! {
        @if !sums.is_empty() {
            figure.chart #chart {
                div.title {
                    figcaption { h3 { (title) " " small { "UTC" } } }
                    div.segments role="radiogroup" aria-label="Chart" {
                        @for plot in &PLOTS {
                            label {
                                input type="radio" name="chart" value=(plot.class) checked[plot.class == PLOTS[0].class];
                                span { (plot.title) }
                            }
                        }
                    }
                }
                @for plot in &PLOTS { (plot.draw(title, period, sums)) }
                (table(title, period, sums))
            }
        }
    }
}

/// One of the charts of the same columns.
struct Plot {
    title: &'static str,
    /// The style knows it.
    class: &'static str,
    /// A value as the scale shows it.
    label: fn(u64) -> String,
    /// The bars of each column, from back to front.
    bars: &'static [Bar],
}

/// A bar within a column.
struct Bar {
    class: &'static str,
    left: usize,
    width: usize,
    value: fn(&UsageTotals) -> u64,
}

/// A bar of the bytes sent stands before a wider one of the bytes received, so that both differ
/// without color.
const PLOTS: [Plot; 3] = [
    Plot {
        title: "Conversions",
        class: "conversions",
        label: |value| value.to_string(),
        bars: &[Bar {
            class: "out",
            left: 1,
            width: 8,
            value: |totals| totals.conversions,
        }],
    },
    Plot {
        title: "Bytes",
        class: "bytes",
        label: short_size,
        bars: &[
            Bar {
                class: "in",
                left: 1,
                width: 8,
                value: |totals| totals.input_bytes,
            },
            Bar {
                class: "out",
                left: 3,
                width: 4,
                value: |totals| totals.output_bytes,
            },
        ],
    },
    Plot {
        title: "Saved",
        class: "saved",
        label: short_size,
        bars: &[Bar {
            class: "out",
            left: 1,
            width: 8,
            value: |totals| totals.input_bytes.saturating_sub(totals.output_bytes),
        }],
    },
];

impl Plot {
    fn draw(&self, title: &str, period: Period, sums: &[UsageSum]) -> Markup {
        let values = || {
            let each = |sum| self.bars.iter().map(move |bar| (bar.value)(sum));
            sums.iter().flat_map(move |sum| each(&sum.totals))
        };
        let step = step(values().max().unwrap_or(0));
        let lines = values().max().unwrap_or(0).div_ceil(step).max(1);
        let top = step.saturating_mul(lines);
        let width = sums.len() * COLUMN;
        let name = format!("chart-{}", self.class);
        html! {
            div class={ "plot " (self.class) } {
                @if self.bars.len() > 1 { p.legend { span.in { "in" } " " span.out { "out" } } }
                div.area {
                    div.scale aria-hidden="true" {
                        @for line in (0..=lines).rev() { span { ((self.label)(step.saturating_mul(line))) } }
                    }
                    svg viewBox={ "0 0 " (width) " " (HEIGHT) } preserveAspectRatio="none" role="img"
                        aria-labelledby={ (name) "-title " (name) "-desc" } {
                        title id={ (name) "-title" } { (self.title) ", " (title.to_lowercase()) }
                        desc id={ (name) "-desc" } {
                            "From " (text(period, sums.first())) " to " (text(period, sums.last()))
                            ". The table below has the numbers."
                        }
                        path.grid d=(grid(lines, width)) {}
                        @for (index, sum) in sums.iter().enumerate() { (self.column(period, index, sum, top)) }
                    }
                }
                div.ticks aria-hidden="true" {
                    @for (index, sum) in sums.iter().enumerate() {
                        span { @if is_labelled(index, sums.len()) { (short_text(period, sum.first_day)) } }
                    }
                }
            }
        }
    }

    fn column(&self, period: Period, index: usize, sum: &UsageSum, top: u64) -> Markup {
        html! {
            g {
                title { (words(period, sum)) }
                rect.hit x=(index * COLUMN) y="0" width=(COLUMN) height=(HEIGHT) {}
                @for bar in self.bars {
                    @let height = height((bar.value)(&sum.totals), top);
                    @if height > 0.0 {
                        rect class=(bar.class) x=(index * COLUMN + bar.left) width=(bar.width)
                            y=(format!("{:.1}", HEIGHT - height)) height=(format!("{height:.1}")) {}
                    }
                }
            }
        }
    }
}

/// The values of a column as a line of text.
fn words(period: Period, sum: &UsageSum) -> String {
    let totals = &sum.totals;
    format!(
        "{}: {} conversions, {} in, {} out, {} saved",
        period_text(period, sum.first_day),
        totals.conversions,
        size(totals.input_bytes),
        size(totals.output_bytes),
        saved(totals.saved_percent())
    )
}

fn text(period: Period, sum: Option<&UsageSum>) -> String {
    sum.map_or_else(String::new, |sum| period_text(period, sum.first_day))
}

/// The distance of two lines of the grid: 1, 2 or 5 times a power of ten, so that at most [`LINES`]
/// of them reach the largest value.
fn step(largest: u64) -> u64 {
    let mut power: u64 = 1;
    loop {
        for factor in [1, 2, 5] {
            let step = power.saturating_mul(factor);
            if largest.div_ceil(step) <= LINES || step == u64::MAX {
                return step;
            }
        }
        power = power.saturating_mul(10);
    }
}

/// The height of a bar; values other than 0 are visible.
fn height(value: u64, top: u64) -> f64 {
    if value == 0 {
        return 0.0;
    }
    (value as f64 / top as f64 * HEIGHT).max(0.7)
}

/// The lines of a scale as a path, from the one of zero on.
fn grid(lines: u64, width: usize) -> String {
    let at = |line: u64| HEIGHT - line as f64 / lines as f64 * HEIGHT;
    let each = (0..=lines).map(|line| format!("M0 {:.1}h{width}", at(line)));
    each.collect()
}

/// Whether a column has its name below it: about three of all, so that a phone has room for them,
/// the newest one among them.
fn is_labelled(index: usize, count: usize) -> bool {
    let distance = (3 * count).div_ceil(8).max(1);
    (count - 1 - index).is_multiple_of(distance)
}

/// A day or a month below its column: `Nov 23` or `Nov 2026`.
fn short_text(period: Period, first_day: u32) -> String {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let text = day_text(first_day);
    let mut parts = text.split('-');
    let mut part = || parts.next().unwrap_or_default();
    let (year, month, day) = (part(), part(), part());
    let month = month
        .parse::<usize>()
        .ok()
        .and_then(|it| MONTHS.get(it.checked_sub(1)?));
    let month = month.copied().unwrap_or_default();
    match period {
        Period::Day => format!("{month} {}", day.trim_start_matches('0')),
        Period::Month => format!("{month} {year}"),
    }
}

/// The numbers of a chart, newest first.
fn table(title: &str, period: Period, sums: &[UsageSum]) -> Markup {
    let column = match period {
        Period::Day => "Day, UTC",
        Period::Month => "Month, UTC",
    };
    html! {
        details.sums {
            summary { (title) " as a table" }
            div.scroll tabindex="0" role="region" aria-label={ (title) " as a table" } {
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

/// A table of shares in all conversions, with a bar for each; nothing for a single row.
pub fn shares(id: &str, column: &str, rows: &[(&str, UsageTotals)]) -> Markup {
    let all: u64 = rows.iter().map(|(_, totals)| totals.conversions).sum();
    let percent =
        |totals: &UsageTotals| (totals.conversions as f64 * 100.0 / all.max(1) as f64).round();
    html! {
        @if rows.len() > 1 {
            div.scroll {
                table.shares id=(id) {
                    thead {
                        tr {
                            th { (column) } th { span.visually-hidden { "Bar" } } th.number { "Number" }
                            th.number { "Share" } th.number { "Saved" }
                        }
                    }
                    tbody {
                        @for (name, totals) in rows {
                            tr {
                                td { (name) }
                                td {
                                    svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true" {
                                        rect.out width=(percent(totals).max(1.0)) height="8" {}
                                    }
                                }
                                td.number { (totals.conversions) }
                                td.number { (percent(totals)) " %" }
                                td.number { (saved(totals.saved_percent())) }
                            }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(first_day: u32, conversions: u64, input_bytes: u64, output_bytes: u64) -> UsageSum {
        UsageSum {
            first_day,
            totals: UsageTotals {
                conversions,
                input_bytes,
                output_bytes,
            },
        }
    }

    #[test]
    fn scales_have_round_steps_and_few_lines() {
        for (largest, expected) in [
            (0, 1),
            (1, 1),
            (4, 1),
            (5, 2),
            (8, 2),
            (9, 5),
            (20, 5),
            (21, 10),
            (400_000, 100_000),
            (400_001, 200_000),
        ] {
            assert_eq!(step(largest), expected, "{largest}");
        }
        assert!(u64::MAX.div_ceil(step(u64::MAX)) <= LINES);
    }

    #[test]
    fn bars_are_as_high_as_their_values() {
        assert_eq!(height(0, 20).to_string(), "0");
        assert_eq!(height(5, 20).to_string(), "25");
        assert_eq!(height(20, 20).to_string(), "100");
        assert!(height(1, u64::MAX) > 0.5, "it cannot be seen");
        let sums = [sum(20_758, 2, 4_000, 1_000), sum(20_759, 0, 0, 0)];
        let text = chart(Period::Day, &sums).into_string();
        // Of 2 conversions, a scale up to 2; of 4 kB, one up to 4 kB.
        for part in [
            r#"class="out" x="1" width="8" y="0.0" height="100.0""#,
            r#"class="in" x="1" width="8" y="0.0" height="100.0""#,
            r#"class="out" x="3" width="4" y="75.0" height="25.0""#,
            "<span>2 kB</span>",
            "id=\"chart-saved-title\">Saved, by day</title>",
            "<title>2026-11-01: 2 conversions, 4.0 kB in, 1.0 kB out, 75 % saved</title>",
            "<td>2026-11-02</td><td class=\"number\">0</td>",
        ] {
            assert!(text.contains(part), "{part} is missing in {text}");
        }
        assert!(!text.contains("style="), "the policy forbids it: {text}");
    }

    #[test]
    fn columns_have_short_names() {
        assert_eq!(short_text(Period::Day, 20_758), "Nov 1");
        assert_eq!(short_text(Period::Month, 20_758), "Nov 2026");
        assert_eq!(short_text(Period::Day, 0), "Jan 1");
    }

    #[test]
    fn some_columns_are_named_and_the_newest_is() {
        for count in 1..=120 {
            let named = (0..count).filter(|index| is_labelled(*index, count));
            assert!((1..=3).contains(&named.count()), "{count}");
            assert!(is_labelled(count - 1, count), "{count}");
        }
    }

    #[test]
    fn shares_are_of_all_conversions() {
        let rows = [
            ("png", sum(0, 3, 10, 5).totals),
            ("gif", sum(0, 1, 10, 5).totals),
        ];
        let text = shares("formats", "Format", &rows).into_string();
        assert!(text.contains("75 %") && text.contains("25 %"), "{text}");
        assert_eq!(shares("formats", "Format", &rows[..1]).into_string(), "");
    }
}
