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

/// All files.
pub static ASSETS: [Asset; 16] = [
    // All pages have it.
    style(
        paths::STYLE,
        &[
            "style/base.css",
            "style/pair.css",
            "style/usage.css",
            "style/docs.css",
        ],
    ),
    // The page that converts has it beside.
    style(paths::CONVERT_STYLE, &["style/convert.css"]),
    // All pages have it, before the stylesheet.
    script(paths::THEME_SCRIPT, &["script/theme.js"]),
    // All pages but those of the next ones have it, and work without.
    script(paths::SCRIPT, &["script/base.js"]),
    // The scripts of single pages contain the script of all pages, so that a page loads one.
    script(paths::USAGE_SCRIPT, &["script/base.js", "script/usage.js"]),
    script(
        paths::TOKENS_SCRIPT,
        &["script/base.js", "script/tokens.js"],
    ),
    script(
        paths::CONVERT_SCRIPT,
        &[
            "script/base.js",
            "script/snippets.js",
            "script/zip.js",
            "script/settings.js",
            "script/pair.js",
            "script/convert.js",
            "script/difference.js",
        ],
    ),
    asset(paths::ICON, "image/svg+xml", &["icon.svg"]),
    // What converts in the start page's drop zone.
    script(
        paths::START_SCRIPT,
        &["script/base.js", "script/pair.js", "script/start.js"],
    ),
    asset(paths::SAMPLE, "image/jpeg", &["../../testdata/chelsea.jpg"]),
    asset(
        paths::SAMPLE_WEBP,
        "image/webp",
        &["../../testdata/chelsea.webp"],
    ),
    // The package by which browsers convert.
    script(paths::BROWSER, &["../../wasm/npm/index.js"]),
    script("/browser/pool.js", &["../../wasm/npm/pool.js"]),
    script("/browser/engine.js", &["../../wasm/npm/engine.js"]),
    script("/browser/problems.js", &["../../wasm/npm/problems.js"]),
    script(paths::BROWSER_WORKER, &["../../wasm/npm/worker.js"]),
];

const fn style(path: &'static str, sources: &'static [&'static str]) -> Asset {
    asset(path, "text/css; charset=utf-8", sources)
}

const fn script(path: &'static str, sources: &'static [&'static str]) -> Asset {
    asset(path, "text/javascript; charset=utf-8", sources)
}

const fn asset(
    path: &'static str,
    media_type: &'static str,
    sources: &'static [&'static str],
) -> Asset {
    Asset {
        path,
        media_type,
        sources,
    }
}
