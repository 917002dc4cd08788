//! Rows of CSV (RFC 4180), which spreadsheets open.

use std::fmt::{Display, Write};

/// The media type.
pub const MEDIA_TYPE: &str = "text/csv; charset=utf-8; header=present";

/// A cell that begins with one of these is a formula for a spreadsheet, which may send data away or
/// start programs (OWASP, "CSV Injection"); the last four matter to East Asian spreadsheets.
const FORMULA: [char; 11] = [
    '=', '+', '-', '@', '\t', '\r', '\n', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}',
];

/// Makes a struct whose fields are the members of a JSON object and the cells of a row.
macro_rules! row {
    ($(#[$attribute:meta])* struct $name:ident<'a> { $($field:ident: $type:ty,)+ }) => {
        $(#[$attribute])*
        #[derive(serde::Serialize)]
        struct $name<'a> { $($field: $type,)+ }

        impl $name<'_> {
            /// The first row of the CSV: the names of the fields.
            const COLUMNS: &'static [&'static str] = &[$(stringify!($field),)+];

            /// Appends the row of CSV.
            fn push_csv(&self, text: &mut String) {
                $crate::http::csv::push_row::<&dyn std::fmt::Display>(text, &[$(&self.$field,)+]);
            }
        }
    };
}

pub(crate) use row;

/// Appends a row of these cells. All rows are written here, so that no cell is left as it is by
/// mistake.
pub fn push_row<C: Display>(text: &mut String, cells: &[C]) {
    for (column, cell) in cells.iter().enumerate() {
        if column > 0 {
            text.push(',');
        }
        let start = text.len();
        write!(text, "{cell}").expect("a String takes everything");
        if let Some(escaped) = escaped(&text[start..]) {
            text.truncate(start);
            text.push_str(&escaped);
        }
    }
    text.push_str("\r\n");
}

/// The cell in quotes, after an apostrophe if it is a formula; `None` if it can stay as it is.
fn escaped(cell: &str) -> Option<String> {
    let is_formula = cell.starts_with(FORMULA);
    if !is_formula && !cell.contains([',', '"', '\r', '\n']) {
        return None;
    }
    let apostrophe = if is_formula { "'" } else { "" };
    Some(format!("\"{apostrophe}{}\"", cell.replace('"', "\"\"")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_and_no_formulas() {
        for (cell, written) in [
            ("", ""),
            ("default", "default"),
            ("a b;c'd", "a b;c'd"),
            ("a=1+2-3@4", "a=1+2-3@4"),
            ("a, \"b\"", "\"a, \"\"b\"\"\""),
            ("a\r\nb", "\"a\r\nb\""),
            ("=1+cmd|' /C calc'!A0", "\"'=1+cmd|' /C calc'!A0\""),
            ("=HYPERLINK(\"x\")", "\"'=HYPERLINK(\"\"x\"\")\""),
            ("+1", "\"'+1\""),
            ("-1", "\"'-1\""),
            ("@SUM(1)", "\"'@SUM(1)\""),
            ("\t=1", "\"'\t=1\""),
            ("\r=1", "\"'\r=1\""),
            ("\n=1", "\"'\n=1\""),
            ("\u{ff1d}1", "\"'\u{ff1d}1\""),
        ] {
            let mut text = "before".to_owned();
            push_row::<&dyn Display>(&mut text, &[&1, &cell, &"z"]);
            assert_eq!(text, format!("before1,{written},z\r\n"));
        }
    }
}
