//! The files of `docs/` that are pages of the service. The build script reads this file too, so it
//! uses nothing of the program.

/// A file of `docs/` that is a page.
pub struct DocPage {
    /// The file's name without `.md`, and the last part of the page's path.
    pub name: &'static str,
    /// Its name in the index.
    pub title: &'static str,
    /// Its purpose in the index.
    pub about: &'static str,
    /// Its readers.
    pub reader: Reader,
}

/// The readers of a page.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    /// Somebody who converts. Examples have the reader's token and this server's address.
    User,
    /// Somebody who runs the service. Examples are shown as they are written.
    Operator,
}

/// Makes the table: for each kind of reader a name, a title and a purpose in each row.
macro_rules! pages {
    ($($reader:ident { $($name:literal $title:literal: $about:literal;)+ })+) => {
        /// The pages in the order of the index.
        pub const DOC_PAGES: &[DocPage] = &[$($(
            DocPage { name: $name, title: $title, about: $about, reader: Reader::$reader },
        )+)+];
    };
}

pages! {
    User {
        "api" "HTTP API": "Parameters, forms, watermarks, answers, errors, tokens, usage.";
        "formats" "Formats": "What is read, colors and orientation, animations, damaged files.";
        "command-line" "Command line": "Converting files without a server, and every command and flag.";
        "cwebp" "cwebp and gif2webp": "The command lines of libwebp's programs, flag by flag.";
        "recipes" "Recipes":
            "Pages with srcset, folders, WordPress, next/image, nginx; from cwebp, sharp, imgproxy, TinyPNG.";
        "browser" "Browsers and Node":
            "The same conversions without a server: a package of JavaScript and WebAssembly.";
    }
    Operator {
        "install" "Installing": "One file, a package for Debian and Ubuntu, an image for containers, Cargo.";
        "operating" "Operating": "The static file, logs, data, backups, limits, memory.";
        "deploy" "Deployment guides": "systemd, nginx, Caddy, HAProxy, Kubernetes, Prometheus, Grafana.";
        "cluster" "Several machines": "Replicas over PostgreSQL: setting up, promises, faults.";
        "security" "Security": "Tokens, passwords, hostile traffic, watermark URLs.";
    }
}
