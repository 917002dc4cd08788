//! The files that pages load, and the sources that each consists of. The build script reads this
//! file too: it joins and compresses the sources.

use super::paths;

/// A file that pages load.
pub struct Asset {
    /// Its path on the server.
    pub path: &'static str,
    /// Its media type.
    pub media_type: &'static str,
    /// The files of this folder that it consists of.
    pub sources: &'static [&'static str],
}

const CSS: &str = "text/css; charset=utf-8";
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";

/// All files.
pub static ASSETS: [Asset; 6] = [
    // All pages have it.
    Asset {
        path: paths::STYLE,
        media_type: CSS,
        sources: &["style/base.css", "style/usage.css", "style/docs.css"],
    },
    // The page that converts has it beside.
    Asset {
        path: paths::CONVERT_STYLE,
        media_type: CSS,
        sources: &["style/convert.css"],
    },
    // All pages but the next two have it, and work without.
    Asset {
        path: paths::SCRIPT,
        media_type: JAVASCRIPT,
        sources: &["script/base.js"],
    },
    // The scripts of the dashboard and of the page that converts contain the script of all pages,
    // so that a page loads one.
    Asset {
        path: paths::USAGE_SCRIPT,
        media_type: JAVASCRIPT,
        sources: &["script/base.js", "script/usage.js"],
    },
    Asset {
        path: paths::CONVERT_SCRIPT,
        media_type: JAVASCRIPT,
        sources: &[
            "script/base.js",
            "script/snippets.js",
            "script/zip.js",
            "script/convert.js",
        ],
    },
    Asset {
        path: paths::ICON,
        media_type: "image/svg+xml",
        sources: &["icon.svg"],
    },
];
