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
pub static ASSETS: [Asset; 14] = [
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
    // All pages have it, before the stylesheet.
    Asset {
        path: paths::THEME_SCRIPT,
        media_type: JAVASCRIPT,
        sources: &["script/theme.js"],
    },
    // All pages but those of the next ones have it, and work without.
    Asset {
        path: paths::SCRIPT,
        media_type: JAVASCRIPT,
        sources: &["script/base.js"],
    },
    // The scripts of single pages contain the script of all pages, so that a page loads one.
    Asset {
        path: paths::USAGE_SCRIPT,
        media_type: JAVASCRIPT,
        sources: &["script/base.js", "script/usage.js"],
    },
    Asset {
        path: paths::TOKENS_SCRIPT,
        media_type: JAVASCRIPT,
        sources: &["script/base.js", "script/tokens.js"],
    },
    Asset {
        path: paths::CONVERT_SCRIPT,
        media_type: JAVASCRIPT,
        sources: &[
            "script/base.js",
            "script/snippets.js",
            "script/zip.js",
            "script/settings.js",
            "script/convert.js",
        ],
    },
    Asset {
        path: paths::ICON,
        media_type: "image/svg+xml",
        sources: &["icon.svg"],
    },
    // What converts in the start page's drop zone.
    Asset {
        path: paths::START_SCRIPT,
        media_type: JAVASCRIPT,
        sources: &["script/base.js", "script/start.js"],
    },
    // The package by which browsers convert.
    Asset {
        path: paths::BROWSER,
        media_type: JAVASCRIPT,
        sources: &["../../wasm/npm/index.js"],
    },
    Asset {
        path: "/browser/pool.js",
        media_type: JAVASCRIPT,
        sources: &["../../wasm/npm/pool.js"],
    },
    Asset {
        path: "/browser/engine.js",
        media_type: JAVASCRIPT,
        sources: &["../../wasm/npm/engine.js"],
    },
    Asset {
        path: "/browser/problems.js",
        media_type: JAVASCRIPT,
        sources: &["../../wasm/npm/problems.js"],
    },
    Asset {
        path: paths::BROWSER_WORKER,
        media_type: JAVASCRIPT,
        sources: &["../../wasm/npm/worker.js"],
    },
];
