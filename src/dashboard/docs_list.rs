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

/// The pages in the order of the index.
pub const DOC_PAGES: &[DocPage] = &[
    DocPage {
        name: "api",
        title: "HTTP API",
        about: "Parameters, forms, watermarks, answers, errors, tokens, usage.",
        reader: Reader::User,
    },
    DocPage {
        name: "formats",
        title: "Formats",
        about: "What is read, colors and orientation, animations, damaged files.",
        reader: Reader::User,
    },
    DocPage {
        name: "command-line",
        title: "Command line",
        about: "Converting files without a server, and every command and flag.",
        reader: Reader::User,
    },
    DocPage {
        name: "cwebp",
        title: "cwebp and gif2webp",
        about: "The command lines of libwebp's programs, flag by flag.",
        reader: Reader::User,
    },
    DocPage {
        name: "recipes",
        title: "Recipes",
        about: "Pages with srcset, folders, WordPress, next/image, nginx; from cwebp, sharp, imgproxy, TinyPNG.",
        reader: Reader::User,
    },
    DocPage {
        name: "browser",
        title: "Browsers and Node",
        about: "The same conversions without a server: a package of JavaScript and WebAssembly.",
        reader: Reader::User,
    },
    DocPage {
        name: "install",
        title: "Installing",
        about: "One file, a package for Debian and Ubuntu, an image for containers, Cargo.",
        reader: Reader::Operator,
    },
    DocPage {
        name: "operating",
        title: "Operating",
        about: "The static file, logs, data, backups, limits, memory.",
        reader: Reader::Operator,
    },
    DocPage {
        name: "deploy",
        title: "Deployment guides",
        about: "systemd, nginx, Caddy, HAProxy, Kubernetes, Prometheus, Grafana.",
        reader: Reader::Operator,
    },
    DocPage {
        name: "cluster",
        title: "Several machines",
        about: "Replicas over PostgreSQL: setting up, promises, faults.",
        reader: Reader::Operator,
    },
    DocPage {
        name: "security",
        title: "Security",
        about: "Tokens, passwords, hostile traffic, watermark URLs.",
        reader: Reader::Operator,
    },
];
