//! Highlights code of the documentation: comments, texts between quotes, and what names a value:
//! options and variables of shells, and keys of JSON. Other languages have their comments and
//! texts. The build script calls it.

use std::fmt::Write as _;

/// The code in HTML, with classes for its tokens. It reads as before, without its tags.
pub fn highlight(language: &str, code: &str) -> String {
    let comments: &[&str] = match language {
        "js" => &["//"],
        "sql" => &["--"],
        "sh" | "caddy" | "haproxy" | "nginx" => &["#"],
        "ini" => &["#", ";"],
        "json" => &[],
        _ => return escaped(code),
    };
    let mut html = String::new();
    let mut before = '\n';
    let mut rest = code;
    while let Some(first) = rest.chars().next() {
        let begins_word = before.is_whitespace() || "([=".contains(before);
        let (class, length) =
            if comments.iter().any(|mark| rest.starts_with(mark)) && before.is_whitespace() {
                ("comment", rest.find('\n').unwrap_or(rest.len()))
            } else if first == '"' || (first == '\'' && begins_word) {
                let length = text_length(rest, first);
                let is_key = language == "json" && rest[length..].trim_start().starts_with(':');
                (if is_key { "name" } else { "text" }, length)
            } else if language == "sh" && (first == '$' || first == '-' && begins_word) {
                let is_of_name =
                    |it: char| it.is_alphanumeric() || it == '_' || first == '-' && it == '-';
                let name = rest[1..]
                    .find(|it| !is_of_name(it))
                    .unwrap_or(rest.len() - 1);
                (if name > 0 { "name" } else { "" }, name + 1)
            } else {
                ("", first.len_utf8())
            };
        let token = escaped(&rest[..length]);
        if class.is_empty() {
            html += &token;
        } else {
            write!(html, "<span class=\"{class}\">{token}</span>").expect("a String takes all");
        }
        before = rest[..length].chars().last().unwrap_or(first);
        rest = &rest[length..];
    }
    html
}

/// The bytes of a text with its quotes; all that follow, if it does not end.
fn text_length(code: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, it) in code.char_indices().skip(1) {
        if it == quote && !is_escaped {
            return at + 1;
        }
        is_escaped = it == '\\' && !is_escaped && quote == '"';
    }
    code.len()
}

/// The text as HTML.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_of_each_language_have_their_class() {
        for (language, code, expected) in [
            ("sh", "# don't", "[comment:# don't]"),
            (
                "sh",
                "a -H 'x # y' --b-c=1 # z",
                "a [name:-H] [text:'x # y'] [name:--b-c]=1 [comment:# z]",
            ),
            (
                "sh",
                "x=$HOME \"$(cat token)\" $(cat token)",
                "x=[name:$HOME] [text:~$(cat token)~] $(cat token)",
            ),
            ("sh", "it's a-b c#d", "it's a-b c#d"),
            (
                "json",
                "{\"a\": \"b\\\"c\", \"d\" : 1}",
                "{[name:~a~]: [text:~b\\~c~], [name:~d~] : 1}",
            ),
            (
                "js",
                "f('http://a'); // b",
                "f([text:'http://a']); [comment:// b]",
            ),
            ("text", "\"a\" # <b>", "~a~ # &lt;b&gt;"),
            ("sh", "\"open", "[text:~open]"),
        ] {
            let html = highlight(language, code)
                .replace("<span class=\"", "[")
                .replace("\">", ":");
            assert_eq!(
                html.replace("</span>", "]").replace("&quot;", "~"),
                expected,
                "{code}"
            );
        }
    }
}
