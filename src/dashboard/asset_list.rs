//! The files that stylesheets and scripts consist of. The build script joins and compresses them.

/// Names, and files from this folder on.
pub const ASSETS: [(&str, &[&str]); 5] = [
    // All pages have it.
    (
        "style",
        &["style/base.css", "style/usage.css", "style/docs.css"],
    ),
    // What the page that converts has beside.
    ("convert-style", &["style/convert.css"]),
    // All pages but the next two have it, and work without.
    ("script", &["script/base.js"]),
    // Those of the dashboard and of the page that converts, with that of all pages in them, so that
    // a page asks for one.
    ("usage-script", &["script/base.js", "script/usage.js"]),
    (
        "convert-script",
        &[
            "script/base.js",
            "script/snippets.js",
            "script/zip.js",
            "script/convert.js",
        ],
    ),
];
